// Compares a convolution with scale, bias, residual and relu in its epilogue with the plain
// convolution followed by these in double precision: direct and Winograd, blocks and panels.
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <tests/kernels/support/array_values.h>
#include <tests/kernels/support/strided_array.h>

#include <cmath>

namespace binade::kernels::conv2d_epilogue_test {
namespace {

struct Case {
  int64_t n, c, h, w, o, kernel = 3, stride = 1, groups = 1;
};

Dims output_sizes(const Case& k) {
  const auto side = [&](int64_t size) { return (size + 2 - k.kernel) / k.stride + 1; };
  return {k.n, k.o, side(k.h), side(k.w)};
}

const std::vector<int> kChannelsLast{0, 2, 3, 1};

struct Operands {
  explicit Operands(const Case& k)
      : x(DType::f32, {k.n, k.c, k.h, k.w}, kChannelsLast),
        w(DType::f32, {k.o, k.c / k.groups, k.kernel, k.kernel}, kChannelsLast),
        bias(DType::f32, {k.o}),
        scale(DType::f32, {k.o}),
        residual(DType::f32, output_sizes(k), kChannelsLast) {
    uint32_t seed = 1;
    for (StridedArray* array : {&x, &w, &bias, &scale, &residual}) {
      array->randomize(seed++, false);
    }
  }
  StridedArray x, w, bias, scale, residual;
};

void check(const Case& k, const char* provider) {
  Operands in(k);
  const Conv2dGeometry geometry{
      .stride = {k.stride, k.stride}, .padding = {1, 1}, .groups = k.groups};
  StridedArray plain(DType::f32, output_sizes(k), kChannelsLast);
  set_conv2d_provider(provider);
  const View x = in.x.view(), w = in.w.view(), y = plain.view(), bias = in.bias.view(),
             scale = in.scale.view(), residual = in.residual.view();
  cpu::conv2d_forward({.x = x, .w = w, .y = y, .geometry = geometry});
  for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool scales = choice & 1, adds = choice & 2, relu = choice & 4;
    SCOPED_TRACE(text(provider, " n", k.n, " c", k.c, " ", k.h, "x", k.w, " o", k.o, " scale ",
                      scales, " residual ", adds, " relu ", relu));
    StridedArray got(DType::f32, output_sizes(k), kChannelsLast);
    cpu::conv2d_forward({.x = x,
                         .w = w,
                         .y = got.view(),
                         .geometry = geometry,
                         .epilogue = {.bias = bias,
                                      .activation = relu ? Activation::relu : Activation::none,
                                      .scale = scales ? scale : kNoView,
                                      .residual = adds ? residual : kNoView}});
    int failures = 0;
    got.each([&](const std::vector<int64_t>& at) {
      const double product = plain.get(at) * (scales ? in.scale.get({at[1]}) : 1),
                   shift = in.bias.get({at[1]}), term = adds ? in.residual.get(at) : 0,
                   sum = product + shift + term;
      const double bound = 2e-7 * (std::fabs(product) + std::fabs(shift) + std::fabs(term));
      failures += !(std::fabs(got.get(at) - (relu && sum < 0 ? 0 : sum)) <= bound);
    });
    EXPECT_EQ(failures, 0);
    EXPECT_TRUE(got.gaps_untouched());
  }
  set_conv2d_provider("own");
}

class Conv2dEpilogue : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_device().is_cpu()) {
      GTEST_SKIP() << "an epilogue of the CPU";
    }
  }
};

TEST_F(Conv2dEpilogue, Direct) {
  check({2, 5, 9, 7, 3}, "own:direct");
  check({1, 16, 11, 13, 47}, "own:direct");
  check({3, 6, 8, 9, 40, 3, 2}, "own:direct");
  check({2, 12, 6, 5, 33, 1, 2}, "own:direct");
  check({2, 6, 7, 7, 15, 3, 1, 3}, "own:direct");
  check({17, 8, 4, 4, 35}, "own:direct");  // each row of tiles is an image
}

TEST_F(Conv2dEpilogue, Grouped) {
  check({2, 19, 9, 7, 19, 3, 1, 19}, "own");  // depthwise
  check({1, 48, 11, 13, 48, 3, 2, 48}, "own");
  check({2, 20, 6, 5, 20, 3, 1, 5}, "own");
  check({2, 9, 8, 12, 27, 3, 1, 9}, "own");
  check({2, 24, 8, 9, 12, 1, 2, 12}, "own");
}

TEST_F(Conv2dEpilogue, Winograd) {
  check({1, 1, 1, 1, 1}, "own:winograd");
  check({9, 20, 15, 14, 36}, "own:winograd");
  check({2, 72, 8, 7, 100}, "own:winograd");
  check({3, 132, 8, 8, 70}, "own:winograd");
}

TEST_F(Conv2dEpilogue, SameBitsAtAnyThreadCount) {
  for (const char* provider : {"own:direct", "own:winograd"}) {
    expect_thread_invariant([&] {
      const Case k{3, 132, 8, 8, 70};
      Operands in(k);
      StridedArray y(DType::f32, output_sizes(k), kChannelsLast);
      set_conv2d_provider(provider);
      cpu::conv2d_forward(
          {.x = in.x.view(),
           .w = in.w.view(),
           .y = y.view(),
           .geometry = {.padding = {1, 1}},
           .epilogue = {
               .bias = in.bias.view(), .scale = in.scale.view(), .residual = in.residual.view()}});
      set_conv2d_provider("own");
      return y.bytes();
    });
  }
}

TEST_F(Conv2dEpilogue, RefusesWhatTilesCannotRead) {
  const Case k{2, 5, 9, 7, 3};
  Operands in(k);
  const auto refused = [&](const View& y, const Epilogue& epilogue) {
    return error_of([&] {
      cpu::conv2d_forward({.x = in.x.view(),
                           .w = in.w.view(),
                           .y = y,
                           .geometry = {.padding = {1, 1}},
                           .epilogue = epilogue});
    });
  };
  StridedArray y(DType::f32, output_sizes(k), kChannelsLast), plain(DType::f32, output_sizes(k)),
      wide(DType::f32, {4});
  const char* const expected = "channels-last order";
  EXPECT_NE(refused(plain.view(), {.scale = in.scale.view()}).find(expected), std::string::npos);
  EXPECT_NE(refused(y.view(), {.scale = wide.view()}).find(expected), std::string::npos);
  EXPECT_NE(refused(y.view(), {.residual = plain.view()}).find(expected), std::string::npos);
  EXPECT_NE(refused(y.view(), {.accumulate = true}).find("which gemm has"), std::string::npos);
  EXPECT_NE(refused(y.view(), {.factor = in.x.view()}).find("which gemm has"), std::string::npos);
  EXPECT_NE(refused(y.view(), {.activation = Activation::gelu}).find("expected none or relu"),
            std::string::npos);
}

TEST_F(Conv2dEpilogue, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::conv2d_epilogue_test
