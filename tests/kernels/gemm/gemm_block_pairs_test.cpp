// Tests blocks of bf16 products in pairs (kernels/gemm/gemm_pairs_internal.h) on every instruction
// set of this machine that has them: the triangles of attention, equal bits for any partition, and
// no access outside of operands.
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace binade::kernels::gemm_block_pairs_test {
namespace {

// Holds `count` elements; memory after the last, or before the first, must not be accessed.
class Bordered {
 public:
  Bordered(size_t count, bool at_end, const std::function<float(size_t)>& value)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        inner_((count * sizeof(bfloat16) + page_ - 1) / page_ * page_) {
    base_ = static_cast<std::byte*>(mmap(nullptr, inner_ + 2 * page_, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(static_cast<void*>(base_), MAP_FAILED);
    EXPECT_EQ(mprotect(base_, page_, PROT_NONE), 0);
    EXPECT_EQ(mprotect(base_ + page_ + inner_, page_, PROT_NONE), 0);
    std::byte* first = base_ + page_ + (at_end ? inner_ - count * sizeof(bfloat16) : 0);
    data_ = reinterpret_cast<bfloat16*>(first);
    for (size_t i = 0; i < count; ++i) {
      data_[i] = bfloat16(value(i));
    }
  }
  ~Bordered() { munmap(base_, inner_ + 2 * page_); }
  Bordered(const Bordered&) = delete;
  Bordered& operator=(const Bordered&) = delete;
  bfloat16* data() const { return data_; }
  View view(int64_t rows, int64_t columns, bool transposed) const {
    return view_of(data_, DType::bf16, {rows, columns},
                   transposed ? Dims{1, rows} : Dims{columns, 1});
  }

 private:
  size_t page_, inner_;
  std::byte* base_ = nullptr;
  bfloat16* data_ = nullptr;
};

float small_integer(size_t i) { return static_cast<float>(i * 7 % 5) - 2; }

TEST(GemmBlockPairs, NothingOutsideOfOperandsIsTouched) {
  const MathModeGuard fast(MathMode::fast);
  for (const int64_t m : {1, 15, 17, 32, 33, 60, 253}) {
    for (const int64_t n : {1, 10, 16, 33}) {
      for (const int64_t k : {1, 2, 31, 32, 46, 66}) {
        for (int layout = 0; layout < 8; ++layout) {
          const auto size = [](int64_t a, int64_t b) { return static_cast<size_t>(a * b); };
          const bool at_end = layout & 4, a_turned = layout & 1, b_turned = layout & 2;
          const Bordered a(size(m, k), at_end, small_integer);
          const Bordered b(size(k, n), at_end, small_integer);
          const Bordered y(size(m, n), at_end, [](size_t) { return 0.0f; });
          const View av = a.view(m, k, a_turned), bv = b.view(k, n, b_turned);
          gemm({.a = av, .b = bv, .y = y.view(m, n, false)});
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              float want = 0;
              for (int64_t p = 0; p < k; ++p) {
                want += static_cast<float>(a.data()[i * av.strides[0] + p * av.strides[1]]) *
                        static_cast<float>(b.data()[p * bv.strides[0] + j * bv.strides[1]]);
              }
              ASSERT_EQ(static_cast<float>(y.data()[i * n + j]), want)
                  << m << " " << n << " " << k << " layout " << layout;
            }
          }
        }
      }
    }
  }
}

using BlockFunction = void (*)(const GemmBlock&);

// Runs on each set that multiplies pairs; skipped if the machine or BINADE_FORCE_ISA has less.
class GemmBlockPairsOn : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (isa() < GetParam()) {
      GTEST_SKIP() << "no " << to_string(GetParam()) << " here, but " << to_string(isa());
    }
  }
  static BlockFunction multiply() {
    return GetParam() == Isa::amx_bf16 ? amx_bf16::gemm_block_pairs : avx512_bf16::gemm_block_pairs;
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, GemmBlockPairsOn, testing::Values(Isa::avx512_bf16, Isa::amx_bf16),
                         [](const auto& info) { return to_string(info.param); });

// Checks one triangle: the visible part of the result is right, and the hidden part of a is 0.
void check_triangle(BlockFunction multiply, Triangular shape, int64_t m, int64_t k,
                    int64_t visible) {
  const int64_t n = shape == Triangular::result ? k : 40,
                inner = shape == Triangular::result ? 24 : k;
  const auto counts = [&](int64_t i, int64_t j) {  // true inside the triangle
    return shape == Triangular::a_transposed ? i < visible + j : j < visible + i;
  };
  std::vector<bfloat16> a(static_cast<size_t>(m * inner)), b(static_cast<size_t>(inner * n));
  for (size_t i = 0; i < a.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / inner, column = static_cast<int64_t>(i) % inner;
    a[i] = bfloat16(shape == Triangular::result || counts(row, column) ? small_integer(i) : 0);
  }
  for (size_t i = 0; i < b.size(); ++i) {
    b[i] = bfloat16(small_integer(i + 3));
  }
  const auto padded = static_cast<size_t>((n + kMaxTileWidth - 1) / kMaxTileWidth * kMaxTileWidth);
  std::vector<float> c(static_cast<size_t>(m * n), 0.5f), packed_a(a.size() + 16),
      packed_b(padded * static_cast<size_t>(inner));
  multiply({.product = {.dtype = DType::bf16,
                        .m = m,
                        .n = n,
                        .k = inner,
                        .a = a.data(),
                        .b = b.data(),
                        .a_strides = {inner, 1},
                        .b_strides = {n, 1}},
            .c = c.data(),
            .c_row = n,
            .epilogue = {.accumulate = true},
            .packed_a = packed_a.data(),
            .packed_b = packed_b.data(),
            .triangle = shape,
            .visible = visible});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float want = 0.5f;
      for (int64_t p = 0; p < inner; ++p) {
        want += static_cast<float>(a[static_cast<size_t>(i * inner + p)]) *
                static_cast<float>(b[static_cast<size_t>(p * n + j)]);
      }
      if (shape != Triangular::result || counts(i, j)) {
        ASSERT_EQ(c[static_cast<size_t>(i * n + j)], want)
            << m << " " << k << " visible " << visible << " at " << i << ", " << j;
      }
    }
  }
}

TEST_P(GemmBlockPairsOn, Triangles) {
  for (const Triangular shape : {Triangular::result, Triangular::a, Triangular::a_transposed}) {
    for (const int64_t m : {1, 17, 64, 70}) {
      for (const int64_t k : {1, 34, 64, 128}) {
        for (const int64_t visible : {1, 2, 33, -20}) {
          check_triangle(multiply(), shape, m, k, visible);
        }
      }
    }
  }
}

TEST_P(GemmBlockPairsOn, SumsTimesFactors) {
  constexpr int64_t kM = 39, kN = 45, kK = 66;
  std::vector<bfloat16> a(kM * kK, bfloat16(2.0f)), b(kK * kN, bfloat16(1.0f));
  std::vector<float> c(kM * kN), factors(kM * kN), packed_a(kM * kK), packed_b(64 * kK);
  for (size_t i = 0; i < factors.size(); ++i) {
    factors[i] = static_cast<float>(i);
  }
  multiply()({.product = {.dtype = DType::bf16,
                          .m = kM,
                          .n = kN,
                          .k = kK,
                          .a = a.data(),
                          .b = b.data(),
                          .a_strides = {kK, 1},
                          .b_strides = {kN, 1}},
              .c = c.data(),
              .c_row = kN,
              .epilogue = {.operand = reinterpret_cast<const std::byte*>(factors.data()),
                           .operand_row = kN,
                           .use = TileOperand::factor},
              .packed_a = packed_a.data(),
              .packed_b = packed_b.data()});
  for (size_t i = 0; i < c.size(); ++i) {
    ASSERT_EQ(c[i], 2 * kK * static_cast<float>(i));
  }
}

// The bits do not depend on which rows and columns are computed together.
TEST_P(GemmBlockPairsOn, SameBitsInAnyCut) {
  constexpr int64_t kM = 70, kN = 90, kK = 802;
  std::vector<bfloat16> a(kM * kK), b(kK * kN);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = bfloat16(1.0f / static_cast<float>(i % 97 + 3));
  }
  for (size_t i = 0; i < b.size(); ++i) {
    b[i] = bfloat16(1.0f / static_cast<float>(i % 89 + 5));
  }
  std::vector<float> packed_a(kM * kPackDepth), packed_b(96 * kPackDepth);
  std::vector<float> whole;
  for (const int64_t rows : {kM, int64_t{32}, int64_t{9}, int64_t{1}}) {
    for (const int64_t columns : {kN, int64_t{32}, int64_t{7}}) {
      std::vector<float> c(kM * kN);
      for (int64_t i = 0; i < kM; i += rows) {
        for (int64_t j = 0; j < kN; j += columns) {
          multiply()({.product = {.dtype = DType::bf16,
                                  .m = std::min(rows, kM - i),
                                  .n = std::min(columns, kN - j),
                                  .k = kK,
                                  .a = a.data() + i * kK,
                                  .b = b.data() + j,
                                  .a_strides = {kK, 1},
                                  .b_strides = {kN, 1}},
                      .c = c.data() + i * kN + j,
                      .c_row = kN,
                      .packed_a = packed_a.data(),
                      .packed_b = packed_b.data()});
        }
      }
      whole = whole.empty() ? c : whole;
      EXPECT_EQ(std::memcmp(whole.data(), c.data(), c.size() * sizeof(float)), 0)
          << rows << " rows, " << columns << " columns";
    }
  }
}

}  // namespace
}  // namespace binade::kernels::gemm_block_pairs_test
