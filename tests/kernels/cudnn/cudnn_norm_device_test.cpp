// Tests norms by the stand-in for cuDNN (fake_cudnn.cpp): its results match our own kernels within
// rounding, and calls that the library cannot do run on our kernels.
#include <tests/kernels/cudnn/cudnn_fixture.h>
#include <tests/kernels/support/array_values.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/norm/cudnn_norm_internal.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

namespace binade::kernels::cudnn_norm_device_test {
namespace {

using CudnnNorm = CudnnTest;

size_t count(const Dims& sizes) { return static_cast<size_t>(element_count(sizes)); }

constexpr double kEps = 1e-5;

// Operands of a norm over [rows, cols] or [N, C, H, W], and its results.
struct NormArrays {
  StridedArray x, dy, y, dx, weight, bias, dweight, dbias, mean, rstd;
  NormArrays(DType dtype, const Dims& sizes, int64_t parameters, int64_t statistics,
             const std::vector<int>& order)
      : x(make_array(dtype, sizes, random_values(count(sizes), 1, 0.5, 2), order)),
        dy(make_array(dtype, sizes, random_values(count(sizes), 2), order)),
        y(dtype, sizes, order),
        dx(y),
        weight(make_array(compute_dtype(dtype), {parameters},
                          random_values(static_cast<size_t>(parameters), 3, 1))),
        bias(make_array(compute_dtype(dtype), {parameters},
                        random_values(static_cast<size_t>(parameters), 4))),
        dweight(compute_dtype(dtype), {parameters}),
        dbias(dweight),
        mean(compute_dtype(dtype), {statistics}),
        rstd(mean) {}
};

void expect_same(NormArrays& got, NormArrays& want, DType dtype, bool centred) {
  const DType compute = compute_dtype(dtype);
  expect_close(got.y, dtype, values_of(want.y), 16, "y", 1);
  expect_close(got.rstd, compute, values_of(want.rstd), 16, "rstd");
  expect_close(got.dx, dtype, values_of(want.dx), 32, "dx", 2);
  expect_close(got.dweight, compute, values_of(want.dweight), 64, "dweight", 4);
  if (centred) {
    expect_close(got.mean, compute, values_of(want.mean), 16, "mean", 1);
    expect_close(got.dbias, compute, values_of(want.dbias), 64, "dbias", 4);
  }
}

void layer_norm_both(NormArrays& t, bool centred) {
  const View mean = centred ? t.mean.view() : kNoView, bias = centred ? t.bias.view() : kNoView;
  const View dbias = centred ? t.dbias.view() : kNoView;
  layer_norm_forward({t.x.view(), t.weight.view(), bias, t.y.view(), mean, t.rstd.view(), kEps});
  layer_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), mean, t.rstd.view(), t.dx.view(),
                       t.dweight.view(), dbias});
}

TEST_F(CudnnNorm, LayerNormAndRmsNorm) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool centred : {true, false}) {
      for (const std::vector<int>& order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}}) {
        NormArrays got(dtype, {7, 33}, 33, 7, order), want(dtype, {7, 33}, 33, 7, order);
        const int64_t before = library_norm_calls();
        layer_norm_both(got, centred);
        const int64_t calls = centred ? 1 : 2;  // the library's mean is too inaccurate
        EXPECT_EQ(library_norm_calls(), before + calls);
        set_norm_provider("own");
        layer_norm_both(want, centred);
        EXPECT_EQ(library_norm_calls(), before + calls);
        set_norm_provider("library");
        expect_same(got, want, dtype, centred);
      }
    }
  }
}

void batch_norm_both(NormArrays& t) {
  batch_norm_forward({.x = t.x.view(),
                      .weight = t.weight.view(),
                      .bias = t.bias.view(),
                      .y = t.y.view(),
                      .mean = t.mean.view(),
                      .rstd = t.rstd.view(),
                      .eps = kEps});
  batch_norm_backward({.x = t.x.view(),
                       .dy = t.dy.view(),
                       .weight = t.weight.view(),
                       .mean = t.mean.view(),
                       .rstd = t.rstd.view(),
                       .dx = t.dx.view(),
                       .dweight = t.dweight.view(),
                       .dbias = t.dbias.view()});
}

TEST_F(CudnnNorm, BatchNormOfEveryRankAndOrder) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [sizes, order] : {std::pair{Dims{3, 5, 4, 3}, std::vector<int>{0, 2, 3, 1}},
                                       {Dims{3, 5, 4, 3}, {0, 1, 2, 3}},
                                       {Dims{9, 6}, {0, 1}},
                                       {Dims{2, 3, 2, 3, 4}, {0, 2, 3, 4, 1}}}) {
      NormArrays got(dtype, sizes, sizes[1], sizes[1], order);
      NormArrays want(dtype, sizes, sizes[1], sizes[1], order);
      const int64_t before = library_norm_calls();
      batch_norm_both(got);
      EXPECT_EQ(library_norm_calls(), before + 2);
      set_norm_provider("own");
      batch_norm_both(want);
      set_norm_provider("library");
      expect_same(got, want, dtype, true);
    }
  }
}

// A training step of a batch norm with the running statistics that it updates.
struct BatchNormStep {
  NormArrays t;
  StridedArray residual, variance, running_mean, running_var;

  BatchNormStep(DType dtype, const Dims& sizes, const std::vector<int>& order)
      : t(dtype, sizes, sizes[1], sizes[1], order),
        residual(make_array(dtype, sizes, random_values(count(sizes), 5), order)),
        variance(DType::f32, {sizes[1]}),
        running_mean(make_array(DType::f32, {sizes[1]}, random_values(count({sizes[1]}), 6))),
        running_var(make_array(DType::f32, {sizes[1]}, random_values(count({sizes[1]}), 7, 1))) {}

  void forward(bool add, bool relu) {
    const View residual_view = add ? residual.view() : kNoView, variance_view = variance.view();
    batch_norm_forward({.x = t.x.view(),
                        .weight = t.weight.view(),
                        .bias = t.bias.view(),
                        .y = t.y.view(),
                        .mean = t.mean.view(),
                        .rstd = t.rstd.view(),
                        .eps = kEps,
                        .residual = residual_view,
                        .relu = relu,
                        .variance = variance_view});
    update(variance_view);
  }
  void update(const View& variance_view) {
    batch_norm_running({.mean = t.mean.view(),
                        .variance = variance_view,
                        .running_mean = running_mean.view(),
                        .running_var = running_var.view(),
                        .momentum = 0.9,
                        .count = t.x.view().numel / t.x.sizes()[1]});
  }
  void backward(bool relu) {
    const View y = relu ? t.y.view() : kNoView;
    batch_norm_backward({.x = t.x.view(),
                         .dy = t.dy.view(),
                         .weight = t.weight.view(),
                         .mean = t.mean.view(),
                         .rstd = t.rstd.view(),
                         .dx = t.dx.view(),
                         .dweight = t.dweight.view(),
                         .dbias = t.dbias.view(),
                         .y = y});
  }
};

// A variance far below eps leaves no digits in rstd, but must keep its own digits.
void expect_same(BatchNormStep& got, BatchNormStep& want, DType dtype) {
  expect_same(got.t, want.t, dtype, true);
  for (int64_t c = 0; c < got.variance.sizes()[0]; ++c) {
    const double variance = want.variance.get({c}), running = want.running_var.get({c});
    EXPECT_NEAR(got.variance.get({c}), variance, 4e-7 * variance) << text(dtype, " channel ", c);
    EXPECT_NEAR(got.running_var.get({c}), running, 4e-7 * running) << text(dtype, " channel ", c);
    EXPECT_NEAR(got.running_mean.get({c}), want.running_mean.get({c}), 1e-6);
  }
}

// Makes the values of channel 0 nearly equal.
void flatten(StridedArray& x) {
  x.each([&](const std::vector<int64_t>& at) {
    if (at[1] == 0) {
      x.set(at, x.get(at) * 0x1p-13);
    }
  });
}

// The library must be asked once what its running variance is; a capture cannot wait for that.
TEST_F(CudnnNorm, TheFirstRunningStatisticsOfACaptureAreOurs) {
  static bool first = true;
  if (!std::exchange(first, false)) {
    GTEST_SKIP() << "the process has asked";
  }
  BatchNormStep got(DType::f32, {2, 3, 5, 4}, {0, 2, 3, 1}), want = got;
  NormArrays& t = got.t;
  const View x = t.x.view(), weight = t.weight.view(), bias = t.bias.view(), y = t.y.view();
  const View mean = t.mean.view(), rstd = t.rstd.view(), variance = got.variance.view();
  const int64_t before = library_norm_calls();
  RecordedGraph graph([&] {
    batch_norm_forward({.x = x,
                        .weight = weight,
                        .bias = bias,
                        .y = y,
                        .mean = mean,
                        .rstd = rstd,
                        .eps = kEps,
                        .variance = variance});
  });
  EXPECT_EQ(library_norm_calls(), before);
  graph.replay();
  set_norm_provider("own");
  want.forward(false, false);
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(got.variance.get({c}), want.variance.get({c}));
  }
}

TEST_F(CudnnNorm, BatchNormWithRunningStatisticsResidualAndRelu) {
  // The library is used unless the stand-in's running variance is neither biased nor unbiased.
  const char* made_of = std::getenv("BINADE_FAKE_CUDNN_VARIANCE");
  const bool known = !made_of || std::string(made_of) != "neither";
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [sizes, order] : {std::pair{Dims{3, 5, 4, 3}, std::vector<int>{0, 2, 3, 1}},
                                       {Dims{3, 5, 4, 3}, {0, 1, 2, 3}},
                                       {Dims{2, 7}, {0, 1}},
                                       {Dims{2, 3, 2, 3, 4}, {0, 2, 3, 4, 1}}}) {
      for (const bool add : {false, true}) {
        for (const bool relu : {false, true}) {
          BatchNormStep got(dtype, sizes, order);
          flatten(got.t.x);
          BatchNormStep want = got;
          const int64_t before = library_norm_calls();
          got.forward(add, relu);
          EXPECT_EQ(library_norm_calls() - before, known) << text(dtype, add, relu);
          got.backward(relu);
          EXPECT_EQ(library_norm_calls() - before, 1 + known) << text(dtype, add, relu);
          set_norm_provider("own");
          want.forward(add, relu);
          const StridedArray own_y = want.t.y;
          want.t.y = got.t.y;  // so relu passes the same gradients
          want.backward(relu);
          want.t.y = own_y;
          set_norm_provider("library");
          expect_same(got, want, dtype);
        }
      }
    }
  }
}

TEST_F(CudnnNorm, NanPassesThroughAFusedRelu) {
  BatchNormStep step(DType::f32, {2, 3, 4, 5}, {0, 2, 3, 1});
  step.t.x.set({1, 2, 0, 3}, NAN);
  step.forward(true, true);
  step.t.y.each(
      [&](const std::vector<int64_t>& at) { EXPECT_EQ(std::isnan(step.t.y.get(at)), at[1] == 2); });
  EXPECT_TRUE(std::isnan(step.variance.get({2})));
  EXPECT_FALSE(std::isnan(step.variance.get({1})));
}

// Our kernels compute what the library refuses, when a plan is made or when it is executed.
TEST_F(CudnnNorm, ARefusedBatchNormIsOursToTheLastBit) {
  BatchNormStep first(DType::f16, {2, 3, 4, 6}, {0, 2, 3, 1});
  first.forward(false, false);  // finds out what the running variance is
  int64_t height = 7;
  for (const char* refusal : {"running", "strict_nan", "execution"}) {
    BatchNormStep got(DType::f16, {2, 3, height++, 6}, {0, 2, 3, 1}), want = got;
    const int64_t before = library_norm_calls();
    setenv(kRefuses, refusal, 1);
    got.forward(true, true);
    unsetenv(kRefuses);
    EXPECT_EQ(library_norm_calls(), before) << refusal;
    set_norm_provider("own");
    want.forward(true, true);
    set_norm_provider("library");
    got.t.y.each([&](const std::vector<int64_t>& at) {
      ASSERT_EQ(got.t.y.get(at), want.t.y.get(at)) << refusal;
    });
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(got.running_var.get({c}), want.running_var.get({c})) << refusal;
    }
  }
}

TEST_F(CudnnNorm, EvaluationIsOurs) {
  BatchNormStep step(DType::bf16, {2, 3, 4, 5}, {0, 2, 3, 1});
  const int64_t before = library_norm_calls();
  batch_norm_inference({.x = step.t.x.view(),
                        .weight = step.t.weight.view(),
                        .bias = step.t.bias.view(),
                        .running_mean = step.running_mean.view(),
                        .running_var = step.running_var.view(),
                        .y = step.t.y.view(),
                        .eps = kEps});
  EXPECT_EQ(library_norm_calls(), before);
}

TEST_F(CudnnNorm, WhatTheLibraryDoesNotWriteIsOurs) {
  const int64_t before = library_norm_calls();
  NormArrays t(DType::f32, {4, 6}, 6, 4, {0, 1}), wide(DType::f64, {4, 6}, 6, 4, {0, 1});
  NormArrays channels(DType::f32, {4, 6}, 6, 6, {0, 1});
  StridedArray rest(DType::f32, {6});
  layer_norm_forward(
      {t.x.view(), kNoView, kNoView, t.y.view(), t.mean.view(), t.rstd.view(), kEps});
  layer_norm_forward(
      {t.x.view(), t.weight.view(), t.bias.view(), t.x.view(), t.mean.view(), t.rstd.view(), kEps});
  layer_norm_both(wide, true);
  const View rest_view = rest.view();
  batch_norm_forward({.x = channels.x.view(),
                      .weight = channels.weight.view(),
                      .bias = channels.bias.view(),
                      .y = channels.y.view(),
                      .mean = channels.mean.view(),
                      .rstd = channels.rstd.view(),
                      .eps = kEps,
                      .mean_rest = rest_view});
  EXPECT_EQ(library_norm_calls(), before);
}

}  // namespace
}  // namespace binade::kernels::cudnn_norm_device_test
#endif
