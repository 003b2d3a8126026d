// Losses that compare input and target element by element: mse, l1, smooth_l1, huber, bce,
// bce_with_logits, kl_div. Forward and backward are one fused kernel each. If the backward itself
// is recorded, it is made of ops.
#include <binade/core/autograd/op.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/loss/pointwise_loss.h>

#include <atomic>
#include <limits>

namespace binade {
namespace {

using kernels::PointwiseLoss;

// The kind of a loss and its constants.
struct LossKind {
  PointwiseLoss loss;
  Reduction reduction;
  double alpha = 0;
};

DType common_dtype(DType a, DType b) {
  return a == b ? a : a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
}

double divisor_of(const char* op, Reduction reduction, const Dims& sizes) {
  switch (reduction) {
    case Reduction::none:
    case Reduction::sum: return 1;
    case Reduction::mean: return static_cast<double>(element_count(sizes));
    case Reduction::batch_mean:
      check(!sizes.empty(), op, ": got a scalar, expected a dimension of samples for batch_mean");
      return static_cast<double>(sizes[0]);
  }
  fail(op, ": got an unknown reduction, number ", static_cast<int>(reduction));
}

Tensor weight_for(const char* op, const char* name, const Tensor& weight, const Tensor& x,
                  const Dims& sizes) {
  if (!weight.defined()) {
    return {};
  }
  check(is_floating(weight.dtype()) && weight.device() == x.device() &&
            broadcast_sizes(op, sizes, weight.sizes()) == sizes,
        op, ": got ", name, " ", weight.dtype(), " of shape ", weight.sizes(), " on ",
        weight.device(), ", expected one that broadcasts to ", sizes, " on ", x.device());
  return cast(weight.detach(), x.dtype());
}

// The derivative with respect to x, or to t, as ops.
Tensor slope(const LossKind& kind, const Tensor& x, const Tensor& t, const Tensor& p,
             bool of_target) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto sign = [](const Tensor& d) {
    const NoGradGuard guard;
    const Tensor zero = full({}, 0, d.dtype(), d.device());
    return cast(gt(d.detach(), zero), d.dtype()) - cast(lt(d.detach(), zero), d.dtype());
  };
  const auto positive = [&p](const Tensor& y) { return p.defined() ? mul(y, p) : y; };
  const double side = of_target ? -1 : 1;
  switch (kind.loss) {
    case PointwiseLoss::mse: return (x - t) * (2 * side);
    case PointwiseLoss::l1: return sign(x - t) * side;
    case PointwiseLoss::smooth_l1:
      return kind.alpha == 0 ? sign(x - t) * side
                             : clamp(x - t, -kind.alpha, kind.alpha) * (side / kind.alpha);
    case PointwiseLoss::huber: return clamp(x - t, -kind.alpha, kind.alpha) * side;
    case PointwiseLoss::bce:
      return of_target ? clamp(log(neg(x) + 1), -100, kInfinity) - clamp(log(x), -100, kInfinity)
                       : (x - t) / clamp((neg(x) + 1) * x, 1e-12, kInfinity);
    case PointwiseLoss::bce_with_logits:
      return of_target ? positive(softplus(neg(x))) - softplus(x)
                       : (neg(t) + 1) * sigmoid(x) - positive(t * sigmoid(neg(x)));
    case PointwiseLoss::kl_div: return of_target ? log(t) - x + 1 : neg(t);
    case PointwiseLoss::kl_div_log_target: return of_target ? exp(t) * (t - x + 1) : neg(exp(t));
  }
  return {};
}

// x and t of one dtype; weights of that dtype, or undefined.
struct LossInputs {
  const Tensor &x, &t, &weight, &pos_weight;
};

// The gradient of x, or of t, as ops.
Tensor recorded_gradient(const LossKind& kind, const LossInputs& in, const Tensor& dy,
                         double divisor, bool of_target) {
  const DType wide = dy.dtype();
  const auto widened = [wide](const Tensor& y) { return y.defined() ? cast(y, wide) : y; };
  Tensor d = slope(kind, widened(in.x), widened(in.t), widened(in.pos_weight), of_target);
  d = in.weight.defined() ? mul(d, widened(in.weight)) : d;
  return cast(mul(d, dy) * (1 / divisor), in.x.dtype());
}

Tensor run(const Op& op, const LossKind& kind, const LossInputs& in, const Dims& sizes) {
  const auto& [x, t, weight, pos_weight] = in;
  const double divisor = divisor_of(op.name, kind.reduction, sizes);
  const bool each = kind.reduction == Reduction::none;
  Tensor y = empty(each ? sizes : Dims{}, compute_dtype(x.dtype()), x.device());
  kernels::pointwise_loss_forward({.op = kind.loss,
                                   .x = broadcast_view(x, sizes),
                                   .t = broadcast_view(t, sizes),
                                   .weight = weight,
                                   .pos_weight = pos_weight,
                                   .y = y,
                                   .each = each,
                                   .divisor = divisor,
                                   .alpha = kind.alpha});
  return op.record(
      {x, t}, y, save(x, t, weight, pos_weight),
      [kind, sizes, divisor](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& t,
                             const Tensor& weight, const Tensor& pos_weight) -> Grads {
        if (grad_enabled()) {
          const auto gradient = [&](bool of_target) {
            return recorded_gradient(kind, {x, t, weight, pos_weight}, dy, divisor, of_target);
          };
          return {needs[0] ? gradient(false) : Tensor(), needs[1] ? gradient(true) : Tensor()};
        }
        const auto memory = [&](int i, const Tensor& like) {
          return !needs[i]               ? Tensor()
                 : like.sizes() == sizes ? needs.out_like(i, like)
                                         : empty(sizes, like.dtype(), like.device());
        };
        Tensor dx = memory(0, x), dt = memory(1, t);
        kernels::pointwise_loss_backward({.op = kind.loss,
                                          .x = broadcast_view(x, sizes),
                                          .t = broadcast_view(t, sizes),
                                          .weight = weight,
                                          .pos_weight = pos_weight,
                                          .dy = dy,
                                          .dx = dx,
                                          .dt = dt,
                                          .divisor = divisor,
                                          .alpha = kind.alpha});
        return {dx, dt};
      });
}

// The losses with weights take x and t of equal sizes, like PyTorch's; the others broadcast.
bool broadcasts(PointwiseLoss loss) {
  return loss != PointwiseLoss::bce && loss != PointwiseLoss::bce_with_logits;
}

// [64, 1] and [64] are usually the same samples, not 64 x 64 pairs.
void warn_of_pairs(const char* op, const Tensor& x, const Tensor& t, const Dims& sizes) {
  static std::atomic_flag warned;
  const int64_t count = element_count(sizes);
  if (count > x.numel() && count > t.numel() && !warned.test_and_set()) {
    warn(text(op, ": got an input of shape ", x.sizes(), " and a target of shape ", t.sizes(),
              ", which broadcast to ", sizes,
              "; if element i belongs to element i, reshape one to the shape of the other"));
  }
}

Tensor pointwise_loss(const Op& op, const LossKind& kind, const Tensor& x_, const Tensor& t_,
                      const Tensor& weight = {}, const Tensor& pos_weight = {}) {
  auto [x, t] = op.enter(x_, t_);
  check_floating(op.name, x);
  check(t.defined() && is_floating(t.dtype()), op.name, ": got ",
        t.defined() ? text("a target of dtype ", t.dtype()) : "an undefined target",
        ", expected a floating dtype; convert it with to(DType::f32)");
  check(broadcasts(kind.loss) || x.sizes() == t.sizes(), op.name, ": got an input of shape ",
        x.sizes(), " and a target of shape ", t.sizes(), ", expected equal shapes");
  const Dims sizes = broadcast_sizes(op.name, x.sizes(), t.sizes());
  warn_of_pairs(op.name, x, t, sizes);
  const DType dtype = common_dtype(x.dtype(), t.dtype());
  const Tensor input = cast(x, dtype), target = cast(t, dtype);
  return run(op, kind,
             {input, target, weight_for(op.name, "a weight", weight, input, sizes),
              weight_for(op.name, "a pos_weight", pos_weight, input, sizes)},
             sizes);
}

}  // namespace

Reduction parse_reduction(std::string_view name) {
  check(name == "none" || name == "mean" || name == "sum" || name == "batchmean",
        "reduction: got \"", name, "\", expected none, mean, sum or batchmean");
  return name == "none"   ? Reduction::none
         : name == "mean" ? Reduction::mean
         : name == "sum"  ? Reduction::sum
                          : Reduction::batch_mean;
}

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  static constexpr Op kOp{"mse_loss", OpClass::loss, true};
  return pointwise_loss(kOp, {PointwiseLoss::mse, reduction}, input, target);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  static constexpr Op kOp{"l1_loss", OpClass::loss, true};
  return pointwise_loss(kOp, {PointwiseLoss::l1, reduction}, input, target);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, double beta, Reduction reduction) {
  static constexpr Op kOp{"smooth_l1_loss", OpClass::loss, true};
  check(beta >= 0, "smooth_l1_loss: got beta ", beta, ", expected 0 or more");
  return pointwise_loss(kOp, {PointwiseLoss::smooth_l1, reduction, beta}, input, target);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, double delta, Reduction reduction) {
  static constexpr Op kOp{"huber_loss", OpClass::loss, true};
  check(delta > 0, "huber_loss: got delta ", delta, ", expected more than 0");
  return pointwise_loss(kOp, {PointwiseLoss::huber, reduction, delta}, input, target);
}

Tensor bce(const Tensor& input, const Tensor& target, const BCELossOptions& options) {
  static constexpr Op kOp{"bce", OpClass::loss, true};
  check(!options.pos_weight.defined(), "bce: got a pos_weight, which bce_with_logits alone has");
  return pointwise_loss(kOp, {PointwiseLoss::bce, options.reduction}, input, target,
                        options.weight);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BCELossOptions& options) {
  static constexpr Op kOp{"bce_with_logits", OpClass::loss, true};
  return pointwise_loss(kOp, {PointwiseLoss::bce_with_logits, options.reduction}, logits, target,
                        options.weight, options.pos_weight);
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivLossOptions& options) {
  static constexpr Op kOp{"kl_div", OpClass::loss, true};
  const PointwiseLoss loss =
      options.log_target ? PointwiseLoss::kl_div_log_target : PointwiseLoss::kl_div;
  return pointwise_loss(kOp, {loss, options.reduction}, input, target);
}

}  // namespace binade
