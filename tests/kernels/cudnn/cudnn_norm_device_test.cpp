// Norms and attention by the stand-in for cuDNN (fake_cudnn.cpp): the results are those of our own
// kernels within rounding, and what the library does not do runs on them.
#include <tests/kernels/attention/attention_problem.h>
#include <tests/kernels/cudnn/kept_workspaces.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/attention/attention_provider.h>
#include <binade/kernels/attention/cudnn_attention_internal.h>
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cudnn/cudnn_api_internal.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <binade/kernels/norm/norm_provider.h>

namespace binade::kernels::cudnn_norm_device_test {
namespace {

cudaError_t (*volatile stand_in_allocates)(void**, size_t) = cudaMalloc;  // cudnn_device_test.cpp

class CudnnNormTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device().is_cpu() || !is_named(kCudnn)) {
      GTEST_SKIP() << "BINADE_CUDNN_LIBRARY names no stand-in";
    }
    ASSERT_EQ(cudnn::missing(), "");
    keep_workspaces();
    set_norm_provider("library");
    set_attention_provider("library");
  }
  void TearDown() override {
    set_norm_provider("own");
    set_attention_provider("own");
    cudaDeviceSynchronize();
    free_workspaces();
  }
};
using CudnnNorm = CudnnNormTest;
using CudnnAttention = CudnnNormTest;

constexpr double kEps = 1e-5;

// Operands of a norm over [rows, cols] or [N, C, H, W]; results of both providers.
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
        const int64_t calls = centred ? 1 : 2;  // the library's mean is not good enough
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

TEST_F(CudnnNorm, WhatTheLibraryDoesNotWriteIsOurs) {
  const int64_t before = library_norm_calls();
  NormArrays t(DType::f32, {4, 6}, 6, 4, {0, 1}), wide(DType::f64, {4, 6}, 6, 4, {0, 1});
  NormArrays channels(DType::f32, {4, 6}, 6, 6, {0, 1});
  StridedArray variance(DType::f32, {6});
  layer_norm_forward(
      {t.x.view(), kNoView, kNoView, t.y.view(), t.mean.view(), t.rstd.view(), kEps});
  layer_norm_forward(
      {t.x.view(), t.weight.view(), t.bias.view(), t.x.view(), t.mean.view(), t.rstd.view(), kEps});
  layer_norm_both(wide, true);
  const View variance_view = variance.view();
  batch_norm_forward({.x = channels.x.view(),
                      .weight = channels.weight.view(),
                      .bias = channels.bias.view(),
                      .y = channels.y.view(),
                      .mean = channels.mean.view(),
                      .rstd = channels.rstd.view(),
                      .eps = kEps,
                      .variance = variance_view});
  EXPECT_EQ(library_norm_calls(), before);
  EXPECT_GT(variance.get({0}), 0);
}

TEST_F(CudnnAttention, ForwardAndBackwardCausalOrNot) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const bool causal : {false, true}) {
      const int64_t before = library_attention_calls();
      check_case({.n = {2, 3, 9, 9, 16, 16}, .causal = causal}, dtype);
      check_case({.n = {1, 2, 5, 11, 8, 24}, .causal = causal}, dtype);
      EXPECT_EQ(library_attention_calls(), before + 4);
    }
  }
}

TEST_F(CudnnAttention, MasksDropoutOddSizesAndWideDtypesAreOurs) {
  const int64_t before = library_attention_calls();
  check_case({.n = {1, 2, 6, 7, 8, 8}, .mask = Mask::add}, DType::f16);
  check_case({.n = {1, 2, 6, 7, 8, 8}, .dropout = 0.25}, DType::f16);
  check_case({.n = {1, 2, 6, 7, 8, 8}, .model_order = true}, DType::f16);  // gaps of 3
  check_case({.n = {1, 2, 6, 7, 12, 8}}, DType::f16);
  check_case({.n = {1, 2, 6, 7, 8, 8}}, DType::f32);
  EXPECT_EQ(library_attention_calls(), before);
}

}  // namespace
}  // namespace binade::kernels::cudnn_norm_device_test
#endif
