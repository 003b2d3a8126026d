// Losses: computed in f32 (f64 for f64), from logits of any floating dtype.
#include <binade/core/create.h>
#include <binade/core/op.h>
#include <binade/core/ops.h>
#include <binade/kernels/cross_entropy.h>
#include <binade/kernels/pointwise.h>
#include <binade/kernels/reduce.h>

namespace binade {
namespace {

constexpr Op kOp{"cross_entropy", OpClass::loss};

void total(const Tensor& rows, const Tensor& sum) {  // [rows] -> []
  kernels::reduce_forward({.op = kernels::Reduce::sum, .x = rows, .y = make_view(sum, {1}, {1})});
}

// loss_i = (1 - s) w_t (lse - z_t) + s / C sum_c w_c (lse - z_c); logits [rows, classes]
Tensor rows_cross_entropy(const Tensor& z, const Tensor& target,
                          const CrossEntropyOptions& options) {
  const DType stat = compute_dtype(z.dtype());
  const Dims rows{z.size(0)};
  const Tensor weight =
      options.weight.defined() ? contiguous(cast(options.weight.detach(), stat)) : Tensor();
  const Device device = z.device();
  Tensor loss = empty(rows, stat, device), row_weight = empty(rows, stat, device),
         lse = empty(rows, stat, device);
  kernels::cross_entropy_forward({.logits = z,
                                  .target = target,
                                  .weight = weight,
                                  .row_loss = loss,
                                  .row_weight = row_weight,
                                  .lse = lse,
                                  .ignore_index = options.ignore_index,
                                  .label_smoothing = options.label_smoothing});
  Tensor divisor = full({}, 1, stat, device);
  if (options.reduction != Reduction::none) {
    Tensor sum = empty({}, stat, device);
    total(loss, sum);
    if (options.reduction == Reduction::mean) {
      total(row_weight, divisor);
      kernels::binary_forward({.op = kernels::Binary::div, .a = sum, .b = divisor, .y = sum});
    }
    loss = sum;
  }
  return kOp.record({z}, loss, save(z, target, weight, lse, divisor),
                    [ignore = options.ignore_index, smoothing = options.label_smoothing](
                        const Tensor& dy, Needs needs, const Tensor& z, const Tensor& target,
                        const Tensor& weight, const Tensor& lse, const Tensor& divisor) -> Grads {
                      Tensor row_scale = empty_like(lse);  // dloss / dloss_i
                      kernels::binary_forward(
                          {.op = kernels::Binary::div, .a = dy, .b = divisor, .y = row_scale});
                      Tensor dz = needs.out_like(0, z);
                      kernels::cross_entropy_backward({.logits = z,
                                                       .target = target,
                                                       .weight = weight,
                                                       .lse = lse,
                                                       .row_scale = row_scale,
                                                       .dlogits = dz,
                                                       .ignore_index = ignore,
                                                       .label_smoothing = smoothing});
                      return {dz};
                    });
}

}  // namespace

Tensor cross_entropy(const Tensor& logits_, const Tensor& target,
                     const CrossEntropyOptions& options) {
  auto [logits] = kOp.enter(logits_);
  check(logits.defined() && target.defined(), "cross_entropy: got an undefined tensor");
  check(logits.dim() >= 2 && is_floating(logits.dtype()), "cross_entropy: got logits of shape ",
        logits.sizes(), " and dtype ", logits.dtype(),
        ", expected [N, C, ...] of a floating dtype");
  Dims expected = logits.sizes();
  Dims order{0};
  for (int i = 2; i < logits.dim(); ++i) {
    expected[i - 1] = logits.sizes()[i];
    order.push_back(i);
  }
  order.push_back(1);
  expected = Dims(std::span(expected.begin(), static_cast<size_t>(logits.dim() - 1)));
  check(target.dtype() == DType::i64 && target.sizes() == expected,
        "cross_entropy: got a target of shape ", target.sizes(), " and dtype ", target.dtype(),
        ", expected i64 ", expected, " for logits ", logits.sizes());
  check(target.device() == logits.device() &&
            (!options.weight.defined() || options.weight.device() == logits.device()),
        "cross_entropy: got logits on ", logits.device(), " and a target on ", target.device(),
        options.weight.defined() ? text(", a weight on ", options.weight.device()) : "",
        ", expected one device; move them with to()");
  const int64_t classes = logits.size(1);
  check(
      !options.weight.defined() || (options.weight.dim() == 1 && options.weight.size(0) == classes),
      "cross_entropy: got a weight that is not [", classes, "], one factor per class");
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1,
        "cross_entropy: got label_smoothing ", options.label_smoothing, ", expected 0 to 1");
  const int64_t rows = target.numel();
  const Tensor z = logits.dim() == 2 ? logits : reshape(permute(logits, order), {rows, classes});
  Tensor loss = rows_cross_entropy(z, reshape(target, {rows}), options);
  return options.reduction == Reduction::none ? reshape(loss, expected) : loss;
}

}  // namespace binade
