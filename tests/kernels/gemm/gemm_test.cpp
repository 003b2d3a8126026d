// Compares gemm with a naive product in double: exact on integers, within the rounding bound on
// random data, for every dtype, layout, epilogue and instruction set; same bits at 1, 2, 4 threads.
#include <binade/kernels/gemm/gemm.h>
#include <tests/kernels/gemm/gemm_case.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::gemm_test {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

TEST(Gemm, ExactOnIntegersAtOddSizes) {
  for (const int64_t m : {1, 3, 14, 17, 33, 129}) {
    for (const int64_t n : {1, 10, 16, 17, 32, 47, 129}) {
      for (const int64_t k : {0, 1, 7, 16, 129, 400}) {
        run({m, n, k});
      }
    }
  }
}

TEST(Gemm, EveryDTypeAndLayout) {
  const std::vector<int> straight = {0, 1}, transposed = {1, 0};
  for (const DType dtype : kDTypes) {
    for (int layout = 0; layout < 8; ++layout) {
      const auto order = [&](int bit) { return layout & bit ? transposed : straight; };
      for (const int64_t gap : {0, 3}) {
        for (const bool integers : {true, false}) {
          run({37, 45, 53, dtype, integers, false, false, false, order(1), order(2), order(4),
               gap});
          run({61, 18, 33, dtype, integers, true, true, true, order(1), order(2), order(4), gap});
        }
      }
    }
  }
}

// These blocks and edges are the CPU's, so a device tries fewer; gemm_device_test has its own.
TEST(Gemm, EpilogueCombinationsAcrossDepthBlocks) {
  const int64_t depth = every_combination() ? 801 : 131;
  for (const DType dtype : kDTypes) {
    for (int flags = 0; flags < 8; ++flags) {
      run({31, 70, depth, dtype, false, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
    }
  }
}

TEST(Gemm, BlocksLargerThanTheBuffers) {
  const int64_t part = every_combination() ? 1 : 4;
  run({1030 / part, 530 / part, 9, DType::f16, false});
  run({290 / part, 1050 / part, 40, DType::f16, true, true, true, true});
  run({255 / part, 700 / part, 385, DType::bf16, true, true});
  run({300, 70, 33, DType::f32, true, false, false, true, {0, 1}, {0, 1}, {1, 0}, 2});
  run({1030 / part, 530 / part, 9, DType::f32, false});
  run({5, 2100 / part, 11, DType::f32, true, true});
  run({300 / part, 35, 390, DType::bf16, false, true, true, true, {1, 0}, {1, 0}, {1, 0}});
}

// A few rows times a transposed matrix are computed as the transpose, with every epilogue.
TEST(Gemm, FewRowsTimesATransposedMatrix) {
  using Sizes = std::vector<int64_t>;
  for (const DType dtype : kDTypes) {
    for (int flags = 0; flags < 16; flags += every_combination() ? 1 : 3) {
      for (const int64_t m : every_combination() ? Sizes{1, 5, 64} : Sizes{1, 5}) {
        GemmCase c{m, 83, 401, dtype, false, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
        c.b = {1, 0};
        c.gelu = (flags & 8) != 0 && !c.relu;
        run(c);
      }
    }
  }
  run({7, 300, 35, DType::f32, true, true, true, true, {1, 0}, {1, 0}, {0, 1}, 3});
}

// Covers panels of a that are narrower than a vector, in both memory orders, at every height.
TEST(Gemm, EveryHeightOfARegisterTile) {
  for (int64_t m = 1; m <= 29; m += every_combination() ? 1 : 9) {
    for (const std::vector<int>& order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}}) {
      for (const DType dtype : kDTypes) {
        run({m, 150, 21, dtype, true, false, false, false, order, {0, 1}, {0, 1}, m % 3});
      }
    }
  }
}

TEST(Gemm, BatchWithBroadcastOperandAndPermutedHeads) {
  const int64_t batch = 5, m = 19, n = 23, k = 11;
  StridedArray a(DType::f32, {batch, m, k}, {1, 0, 2});
  StridedArray b(DType::f32, {k, n}), y(DType::f32, {batch, m, n}, {1, 0, 2});
  a.randomize(1, true);
  b.randomize(2, true);
  View shared = test_view(b.view().data, DType::f32, {batch, k, n}, {0, n, 1});
  gemm({.a = a.view(), .b = shared, .y = y.view()});
  y.each([&](const std::vector<int64_t>& at) {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      sum += a.get({at[0], at[1], p}) * b.get({p, at[2]});
    }
    ASSERT_EQ(y.get(at), sum);
  });
}

TEST(Gemm, GeneralStridesInBothDimensions) {
  std::vector<float> memory(40 * 40, 0);
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  }
  TestValues<float> device_memory(memory), out(20 * 20 * 4, 77);
  const View a = device_memory.view(DType::f32, {20, 13}, {80, 3});
  const View b = device_memory.view(DType::f32, {13, 20}, {2, 40});
  gemm({.a = a, .b = b, .y = out.view(DType::f32, {20, 20}, {80, 2})});
  for (size_t i = 0; i < 20; ++i) {
    for (size_t j = 0; j < 20; ++j) {
      float sum = 0;
      for (size_t p = 0; p < 13; ++p) {
        sum += memory[i * 80 + p * 3] * memory[p * 2 + j * 40];
      }
      ASSERT_EQ(out[i * 80 + j * 2], sum);
      ASSERT_EQ(out[i * 80 + j * 2 + 1], 77);
    }
  }
}

TEST(Gemm, EmptyOutputAndReluKeepsNaN) {
  StridedArray a(DType::f32, {0, 4}), b(DType::f32, {4, 3}), y(DType::f32, {0, 3});
  gemm({.a = a.view(), .b = b.view(), .y = y.view()});
  StridedArray x(DType::f32, {1, 1}), w(DType::f32, {1, 1}), z(DType::f32, {1, 1});
  x.set({0, 0}, NAN);
  w.set({0, 0}, 1);
  gemm({.a = x.view(), .b = w.view(), .y = z.view(), .epilogue = {.activation = Activation::relu}});
  EXPECT_TRUE(std::isnan(z.get({0, 0})));
}

TEST(Gemm, SameBitsAtAnyThreadCount) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{257, 130, 500}, Size{64, 512, 512}, Size{129, 784, 64}}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const std::vector<int>& order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}}) {
        std::vector<std::byte> first;
        for (const int count : {1, 2, 4}) {
          set_threads(count);
          StridedArray a(dtype, {s.m, s.k}, order), b(dtype, {s.k, s.n}, {1, 0}),
              y(dtype, {s.m, s.n}), bias(dtype, {s.n});
          a.randomize(1, false);
          b.randomize(2, false);
          bias.randomize(3, false);
          gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = {.bias = bias.view()}});
          first = first.empty() ? y.bytes() : first;
          EXPECT_EQ(first, y.bytes()) << count << " threads";
        }
        set_threads(0);
      }
    }
  }
}

// Covers k in one block and in three, tiles of two vectors and of one, odd heights.
TEST(Gemm, FactorOfTheEpilogue) {
  if (!StridedArray(DType::f32, {1}).view().device.is_cpu()) {
    GTEST_SKIP() << "a kernel of the CPU";
  }
  for (const int64_t m : {1, 17, 300}) {
    for (const int64_t n : {5, 45, 128}) {
      for (const int64_t k : {0, 1, 70, 256, 900}) {
        StridedArray a(DType::f32, {m, k}), b(DType::f32, {k, n}), factors(DType::f32, {m, n}),
            y(DType::f32, {m, n}), plain(DType::f32, {m, n});
        a.randomize(1, false);
        b.randomize(2, false);
        factors.randomize(3, false);
        gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = {.factor = factors.view()}});
        gemm({.a = a.view(), .b = b.view(), .y = plain.view()});
        y.each([&](const std::vector<int64_t>& at) {
          ASSERT_EQ(static_cast<float>(y.get(at)),
                    static_cast<float>(plain.get(at)) * static_cast<float>(factors.get(at)))
              << m << " x " << n << " x " << k;
        });
      }
    }
  }
}

struct ValueAndSlope {
  double value, slope;
};
ValueAndSlope exact_gelu(double x) {
  const double cdf = 0.5 * std::erfc(-x / std::sqrt(2.0));
  return {x * cdf, cdf + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI)};
}
ValueAndSlope tanh_gelu(double x) {
  const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 0.134145 * x * x)};
}

// Covers both gelus in the epilogue, with and without their slope, and k in one or several blocks.
TEST(Gemm, GeluAndItsSlope) {
  if (!StridedArray(DType::f32, {1}).view().device.is_cpu()) {
    GTEST_SKIP() << "a kernel of the CPU";
  }
  for (const Activation gelu : {Activation::gelu, Activation::gelu_tanh}) {
    for (const auto& [m, k] : {std::pair{1, 70}, {17, 0}, {17, 900}, {300, 70}, {300, 900}}) {
      const int64_t n = 45;
      StridedArray a(DType::f32, {m, k}), b(DType::f32, {k, n}), bias(DType::f32, {n}),
          sums(DType::f32, {m, n}), y(DType::f32, {m, n}), slope(DType::f32, {m, n}),
          alone(DType::f32, {m, n});
      a.randomize(1, false);
      b.randomize(2, false);
      bias.randomize(3, false);
      const View av = a.view(), bv = b.view(), biases = bias.view();
      gemm({.a = av, .b = bv, .y = sums.view(), .epilogue = {.bias = biases}});
      gemm({.a = av,
            .b = bv,
            .y = y.view(),
            .epilogue = {.bias = biases, .activation = gelu, .slope = slope.view()}});
      gemm({.a = av, .b = bv, .y = alone.view(), .epilogue = {.bias = biases, .activation = gelu}});
      y.each([&](const std::vector<int64_t>& at) {
        const double x = sums.get(at);
        const ValueAndSlope want = gelu == Activation::gelu ? exact_gelu(x) : tanh_gelu(x);
        ASSERT_NEAR(y.get(at), want.value, 1e-6 * (1 + std::fabs(x)));
        ASSERT_NEAR(alone.get(at), want.value, 1e-6 * (1 + std::fabs(x)));
        ASSERT_NEAR(slope.get(at), want.slope, 2e-6 * (1 + std::fabs(x)));
      });
    }
  }
}

TEST(Gemm, RefusesAnEpilogueThatItDoesNotHave) {
  StridedArray a(DType::f32, {3, 4}), b(DType::f32, {4, 5}), y(DType::f32, {3, 5}),
      other(DType::f32, {3, 5}), narrow(DType::f32, {3, 4}), vector(DType::f32, {5});
  const auto refused = [&](const Epilogue& epilogue, const char* why) {
    const std::string message = error_of(
        [&] { gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = epilogue}); });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  const View matrix = other.view(), small = narrow.view(), scale = vector.view();
  refused({.scale = scale}, "which conv2d has");
  refused({.residual = matrix}, "which conv2d has");
  refused({.factor = small}, "expected f32 [m, n] on the CPU");
  if (!y.view().device.is_cpu()) {
    refused({.activation = Activation::gelu}, "apply gelu as an op");
    refused({.factor = matrix}, "expected f32 [m, n] on the CPU");
    return;
  }
  refused({.slope = matrix}, "a slope with gelu");
  refused({.activation = Activation::gelu_tanh, .factor = matrix}, "a slope with gelu");
  refused({.activation = Activation::gelu, .factor = matrix, .slope = matrix}, "a slope with gelu");
}

// Covers both memory orders of a, blocks by rows and by columns, y computed as its transpose, k in
// several blocks, and empty products.
TEST(Gemm, RowSumsAreThoseOfA) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{515, 128, 900}, Size{37, 50, 70}, Size{20, 300, 403}, Size{5, 600, 600},
                       Size{3, 4, 1}, Size{3, 4, 0}, Size{0, 4, 3}, Size{3, 0, 5}}) {
    for (const DType dtype : kDTypes) {
      for (const std::vector<int>& order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}}) {
        std::vector<std::byte> first;
        for (const int count : {1, 2, 4}) {
          StridedArray a(dtype, {s.m, s.k}, order), b(dtype, {s.k, s.n}, {1, 0}),
              sums(dtype, {s.m}), y(dtype, {s.m, s.n}), plain(dtype, {s.m, s.n});
          if (!y.view().device.is_cpu()) {
            GTEST_SKIP() << "a kernel of the CPU";
          }
          a.randomize(1, is_half(dtype));
          b.randomize(2, false);
          set_threads(count);
          cpu::gemm_with_row_sums({.a = a.view(), .b = b.view(), .y = y.view()}, sums.view());
          gemm({.a = a.view(), .b = b.view(), .y = plain.view()});
          EXPECT_EQ(y.bytes(), plain.bytes());
          for (int64_t i = 0; i < s.m; ++i) {
            double sum = 0, scale = 0;
            for (int64_t j = 0; j < s.k; ++j) {
              sum += a.get({i, j});
              scale += std::fabs(a.get({i, j}));
            }
            const double rounding = is_half(dtype) ? epsilon(dtype) * std::fabs(sum) : 0;
            ASSERT_NEAR(sums.get({i}), sum, rounding + 10 * epsilon(compute_dtype(dtype)) * scale);
          }
          first = first.empty() ? sums.bytes() : first;
          EXPECT_EQ(first, sums.bytes()) << count << " threads";
        }
        set_threads(0);
      }
    }
  }
}

TEST(Gemm, ErrorsNameShapesAndDTypes) {
  StridedArray a(DType::f32, {2, 3}), b(DType::f32, {4, 5}), y(DType::f32, {2, 5});
  try {
    gemm({.a = a.view(), .b = b.view(), .y = y.view()});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gemm: got shapes a [2, 3], b [4, 5]"),
              std::string::npos);
  }
  StridedArray half_a(DType::f16, {2, 4});
  EXPECT_THROW(gemm({.a = half_a.view(), .b = b.view(), .y = y.view()}), Error);
  StridedArray good(DType::f32, {2, 4}), bias(DType::f32, {4});
  EXPECT_THROW(
      gemm({.a = good.view(), .b = b.view(), .y = y.view(), .epilogue = {.bias = bias.view()}}),
      Error);
  StridedArray batch(DType::f32, {1, 2, 4});
  EXPECT_THROW(gemm({.a = batch.view(), .b = b.view(), .y = y.view()}), Error);
}

TEST(Gemm, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::gemm_test
