// Cases of the loss kernels.
#include <bench/kernel_cases.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/ctc_loss.h>
#include <binade/kernels/loss/nll_loss.h>
#include <binade/kernels/loss/pointwise_loss.h>
#include <binade/kernels/loss/soft_cross_entropy.h>
#include <binade/kernels/reduce/cosine_similarity.h>

namespace binade::bench {
namespace {

using kernels::PointwiseLoss;

template <PointwiseLoss kOp>
Prepared pointwise_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &t = o->random(dtype, {rows, cols});
  const View& y = o->empty(compute_dtype(dtype), {});
  return {o,
          [&x, &t, &y] {
            kernels::pointwise_loss_forward({.op = kOp, .x = x, .t = t, .y = y, .alpha = 1});
          },
          bytes_of(x, t, y), 0};
}

template <PointwiseLoss kOp>
Prepared pointwise_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &t = o->random(dtype, {rows, cols});
  const View &dy = o->random(compute_dtype(dtype), {}), &dx = o->empty(dtype, {rows, cols});
  return {o,
          [&x, &t, &dy, &dx] {
            kernels::pointwise_loss_backward(
                {.op = kOp, .x = x, .t = t, .dy = dy, .dx = dx, .dt = kNoView, .alpha = 1});
          },
          bytes_of(x, t, dy, dx), 0};
}

Prepared soft_cross_entropy_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &z = o->random(dtype, {rows, cols}), &t = o->random(dtype, {rows, cols});
  const View &dz = o->empty(dtype, {rows, cols}), &scale = o->random(compute_dtype(dtype), {rows});
  return {o,
          [&z, &t, &dz, &scale] {
            kernels::soft_cross_entropy_backward(
                {.logits = z, .target = t, .weight = kNoView, .row_scale = scale, .dlogits = dz});
          },
          bytes_of(z, t, dz, scale), 0};
}

Prepared nll_loss_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const DType stat = compute_dtype(dtype);
  const View &x = o->random(dtype, {rows, cols, 1}), &target = o->zeros(DType::i64, {rows, 1});
  const View &loss = o->empty(stat, {rows, 1}), &weight = o->empty(stat, {rows, 1});
  const double gathered = static_cast<double>(rows) * static_cast<double>(size_of(dtype));
  return {o,
          [&x, &target, &loss, &weight] {
            kernels::nll_loss_forward({.log_probs = x,
                                       .target = target,
                                       .weight = kNoView,
                                       .row_loss = loss,
                                       .row_weight = weight});
          },
          bytes_of(target, loss, weight) + gathered, 0};
}

Prepared cosine_similarity(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const DType stat = compute_dtype(dtype);
  const View &a = o->random(dtype, {rows, cols}), &b = o->random(dtype, {rows, cols});
  const View &y = o->empty(stat, {rows}), &i1 = o->empty(stat, {rows}),
             &i2 = o->empty(stat, {rows});
  return {o,
          [&a, &b, &y, &i1, &i2] {
            kernels::cosine_similarity_forward(
                {.x1 = a, .x2 = b, .y = y, .inverse1 = i1, .inverse2 = i2, .dim = 1, .eps = 1e-8});
          },
          bytes_of(a, b, y, i1, i2), 0};
}

Prepared ctc_loss_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  constexpr int64_t kSamples = 8, kLabels = 16;
  const Shared o = std::make_shared<Operands>(device);
  const DType stat = compute_dtype(dtype);
  const View& x = o->random(stat, {rows, kSamples, cols});
  const View &targets = o->empty(DType::i64, {kSamples, kLabels}),
             &inputs = o->empty(DType::i64, {kSamples}), &labels = o->empty(DType::i64, {kSamples});
  kernels::fill({.y = targets, .value = 1});
  kernels::fill({.y = inputs, .value = static_cast<double>(rows)});
  kernels::fill({.y = labels, .value = static_cast<double>(kLabels)});
  const View& alpha = o->empty(stat, {kSamples, rows, 2 * kLabels + 1});
  const View &nll = o->empty(stat, {kSamples}), &loss = o->empty(stat, {kSamples});
  // All labels are equal, so each time step reads two classes: the label and the blank.
  const double read =
      2.0 * static_cast<double>(kSamples * rows) * static_cast<double>(size_of(stat));
  return {o,
          [&x, &targets, &inputs, &labels, &alpha, &nll, &loss] {
            kernels::ctc_loss_forward({.sequences = {x, targets, inputs, labels, 0, true, false},
                                       .alpha = alpha,
                                       .nll = nll,
                                       .loss = loss});
          },
          bytes_of(targets, inputs, labels, alpha, nll, loss) + read, 0};
}

}  // namespace

std::vector<KernelCase> loss_cases() {
  constexpr const char* kMatrix = "rows x cols elements";
  constexpr const char* kRows = "rows positions, cols classes";
  return {
      {"mse_loss_forward", kMatrix, pointwise_forward<PointwiseLoss::mse>},
      {"mse_loss_backward", kMatrix, pointwise_backward<PointwiseLoss::mse>},
      {"bce_with_logits_forward", kMatrix, pointwise_forward<PointwiseLoss::bce_with_logits>},
      {"bce_with_logits_backward", kMatrix, pointwise_backward<PointwiseLoss::bce_with_logits>},
      {"soft_cross_entropy_backward", kRows, soft_cross_entropy_backward},
      {"nll_loss_forward", kRows, nll_loss_forward},
      {"cosine_similarity_forward", "rows vectors of cols", cosine_similarity},
      {"ctc_loss_forward", "rows times, 8 samples, cols classes", ctc_loss_forward},
  };
}

}  // namespace binade::bench
