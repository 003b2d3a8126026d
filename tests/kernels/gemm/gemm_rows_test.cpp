// Tests products of few rows or columns, and of packed weights: values against sums in double, and
// the same bits as the same rows of a larger product.
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/gemm/gemm.h>
#include <tests/kernels/gemm/gemm_case.h>

#include <memory>

namespace binade::kernels::gemm_rows_test {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
const std::vector<int> kStraight = {0, 1}, kTransposed = {1, 0};

// Keeps one packing, as core does.
class OnePacking final : public WeightPacking {
 public:
  const std::byte* get(const PackingFormat& format,
                       const std::function<void(std::byte*)>& fill) override {
    ++uses;
    if (bytes_.empty() || !(format == format_)) {
      ++fills;
      format_ = format;
      bytes_.assign(format.bytes + kPadding, std::byte{0x7f});  // NaN after the elements
      fill(bytes_.data());
    }
    return bytes_.data();
  }
  size_t bytes() const { return format_.bytes; }
  int uses = 0, fills = 0;

 private:
  PackingFormat format_;
  std::vector<std::byte> bytes_;
};

bool on_cpu() { return StridedArray(DType::f32, {1}).view().device.is_cpu(); }

// Covers sizes around vectors and groups, and around one block of k.
TEST(GemmRows, ValuesAtEdgesOfVectorsAndBlocks) {
  for (const int64_t m : {1, 2, 8, 9, 17}) {
    for (const int64_t n : {7, 8, 15, 16, 17, 32, 33, 70}) {
      for (const int64_t k : {1, 15, 16, 17, 33, 129, 401}) {
        for (const std::vector<int>& order : {kStraight, kTransposed}) {
          for (const DType dtype : {DType::f32, DType::bf16}) {
            run({.m = m, .n = n, .k = k, .dtype = dtype, .b = order});
          }
        }
      }
    }
  }
}

TEST(GemmRows, EpiloguesInEveryDTypeAndLayout) {
  for (const DType dtype : kDTypes) {
    for (const int64_t k : {35, 801}) {
      for (int flags = 0; flags < 16; flags += every_combination() ? 1 : 3) {
        const auto order = [&](int bit) { return flags & bit ? kStraight : kTransposed; };
        run({.m = flags % 2 ? 2 : 5,
             .n = 75,
             .k = k,
             .dtype = dtype,
             .integers = false,
             .bias = (flags & 1) != 0,
             .relu = (flags & 2) != 0,
             .accumulate = (flags & 4) != 0,
             .a = order(8),
             .b = order(1),
             .gap = 3,
             .gelu = flags == 9});
      }
    }
  }
}

TEST(GemmRows, WideRowsThatFillSeveralGroups) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    run({.m = 8, .n = 1000, .k = 37, .dtype = dtype, .integers = false});
    run({.m = 1, .n = 4500, .k = 19, .dtype = dtype, .integers = false, .bias = true});
  }
}

// A product of one to six columns is computed as its transpose.
TEST(GemmRows, FewColumns) {
  for (const DType dtype : kDTypes) {
    for (const int64_t n : {1, 2, 6, 7}) {
      for (const std::vector<int>& order : {kStraight, kTransposed}) {
        GemmCase c{.m = 77, .n = n, .k = 401, .dtype = dtype, .integers = false};
        c.a = order;
        run(c);
        c.bias = c.relu = c.accumulate = true;
        c.gap = 2;
        run(c);
      }
    }
  }
}

TEST(GemmRows, BatchesOfFewRows) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    run({.m = 3, .n = 40, .k = 50, .dtype = dtype, .b = kTransposed, .batch = 4});
    run({.m = 3, .n = 40, .k = 50, .dtype = dtype, .batch = 4, .share_b = true});
    run({.m = 40, .n = 3, .k = 50, .dtype = dtype, .batch = 4});
  }
}

// The bytes of rows [0, rows) of y, which has `columns` columns.
std::vector<std::byte> rows_of(const std::vector<std::byte>& y, int64_t rows, int64_t columns,
                               DType dtype) {
  const size_t bytes = static_cast<size_t>(rows * columns) * size_of(dtype);
  return {y.begin(), y.begin() + static_cast<ptrdiff_t>(bytes)};
}

// A row of a product has the same bits in any product: a batch of one gives what the same sample
// gives in a batch of 64, and a packed weight gives what the weight gives.
TEST(GemmRows, BitsDoNotDependOnTheNumberOfRows) {
  if (!on_cpu()) {
    GTEST_SKIP() << "a promise of the CPU";
  }
  const int64_t all = 40, n = 45;
  for (const DType dtype : kDTypes) {
    for (const std::vector<int>& order : {kStraight, kTransposed}) {
      for (const int64_t k : {33, 384, 385, 900}) {
        StridedArray a(dtype, {all, k}), b(dtype, {k, n}, order), y(dtype, {all, n}),
            bias(dtype, {n});
        a.randomize(1, false);
        b.randomize(2, false);
        bias.randomize(3, false);
        const Epilogue epilogue{.bias = bias.view(), .activation = Activation::relu};
        gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = epilogue});
        for (const int64_t m : {1, 2, 8, 16}) {
          const View first = test_view(a.view().data, dtype, {m, k}, {k, 1});
          StridedArray few(dtype, {m, n}), kept(dtype, {m, n});
          OnePacking packing;
          gemm({.a = first, .b = b.view(), .y = few.view(), .epilogue = epilogue});
          gemm({.a = first,
                .b = b.view(),
                .y = kept.view(),
                .epilogue = epilogue,
                .packing = &packing});
          EXPECT_EQ(few.bytes(), rows_of(y.bytes(), m, n, dtype))
              << to_string(dtype) << " " << m << " " << k;
          EXPECT_EQ(kept.bytes(), few.bytes()) << to_string(dtype) << " " << m << " " << k;
        }
      }
    }
  }
}

TEST(GemmRows, BitsDoNotDependOnTheNumberOfColumns) {
  if (!on_cpu()) {
    GTEST_SKIP() << "a promise of the CPU";
  }
  const int64_t m = 37, all = 45, k = 500;
  for (const DType dtype : kDTypes) {
    StridedArray a(dtype, {m, k}), b(dtype, {k, all}), y(dtype, {m, all});
    a.randomize(1, false);
    b.randomize(2, false);
    gemm({.a = a.view(), .b = b.view(), .y = y.view()});
    for (const int64_t n : {1, 3, 6, 9}) {
      const View first = test_view(b.view().data, dtype, {k, n}, {all, 1});
      StridedArray few(dtype, {m, n});
      gemm({.a = a.view(), .b = first, .y = few.view()});
      few.each([&](const std::vector<int64_t>& at) { ASSERT_EQ(few.get(at), y.get(at)); });
    }
  }
}

// Covers row counts around kFewRows, a partly filled last panel, and k in one block and more.
TEST(GemmRows, PackedOnceForAnyNumberOfRows) {
  if (!on_cpu()) {
    GTEST_SKIP() << "packings are the CPU's";
  }
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const int64_t n : {1, 8, 31, 33, 2100}) {
      for (const int64_t k : {1, 33, 800}) {
        StridedArray b(dtype, {k, n}, kTransposed);
        b.randomize(2, false);
        OnePacking packing;
        for (const int64_t m : {1, 16, 17, 50, 300}) {
          StridedArray a(dtype, {m, k}), y(dtype, {m, n}), plain(dtype, {m, n});
          a.randomize(1, false);
          gemm({.a = a.view(), .b = b.view(), .y = y.view(), .packing = &packing});
          gemm({.a = a.view(), .b = b.view(), .y = plain.view()});
          EXPECT_EQ(y.bytes(), plain.bytes())
              << to_string(dtype) << " " << m << " " << n << " " << k;
        }
        EXPECT_LE(packing.fills, 1);
        EXPECT_EQ(packing.fills == 0, packing.uses == 0);
        if (dtype == DType::f32) {
          EXPECT_EQ(packing.fills, 1);
          EXPECT_EQ(packing.bytes(), static_cast<size_t>(k * n) * sizeof(float));
        }
      }
    }
  }
}

TEST(GemmRows, SameBitsAtAnyThreadCount) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::vector<int>& order : {kStraight, kTransposed}) {
      std::vector<std::byte> first;
      for (const int count : {1, 2, 4}) {
        set_threads(count);
        StridedArray a(dtype, {3, 900}), b(dtype, {900, 1100}, order), y(dtype, {3, 1100});
        a.randomize(1, false);
        b.randomize(2, false);
        gemm({.a = a.view(), .b = b.view(), .y = y.view()});
        first = first.empty() ? y.bytes() : first;
        EXPECT_EQ(first, y.bytes()) << count << " threads";
      }
      set_threads(0);
    }
  }
}

TEST(GemmRows, PreciseModeComputesInFloat) {
  const MathModeGuard precise(MathMode::precise);
  run({.m = 4, .n = 50, .k = 70, .dtype = DType::bf16, .integers = false, .b = kTransposed});
  run({.m = 4, .n = 50, .k = 70, .dtype = DType::bf16, .integers = false});
}

TEST(GemmRows, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::gemm_rows_test
