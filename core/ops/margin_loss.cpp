// Losses made of other ops, in the compute dtype and without a precision policy.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/margin_loss.h>

#include <cmath>
#include <numbers>

namespace binade {
namespace {

const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

// Checks the inputs of a loss; returns the dtype in which it is computed.
DType check_inputs(const char* op, std::initializer_list<const Tensor*> inputs) {
  DType dtype = DType::f32;
  for (const Tensor* input : inputs) {
    check_floating(op, *input);
    dtype = input->dtype() == DType::f64 ? DType::f64 : dtype;
  }
  check_one_device(op, inputs);
  return dtype;
}

// A target of 1 and -1: in i64 if it is not floating, as u8 does not hold -1.
Tensor signs_of(const char* op, const Tensor& target, const Tensor& x) {
  check_defined(op, target);
  check_one_device(op, {&target, &x});
  const PrecisionScope no_policy(Precision::full());
  return is_floating(target.dtype()) ? target : cast(target, DType::i64);
}

Tensor reduced(const char* op, const Tensor& each, Reduction reduction) {
  check(reduction == Reduction::none || reduction == Reduction::mean || reduction == Reduction::sum,
        op, ": got the reduction ",
        reduction == Reduction::batch_mean ? text("batch_mean")
                                           : text("number ", static_cast<int>(reduction)),
        ", expected none, mean or sum");
  return reduction == Reduction::none   ? each
         : reduction == Reduction::mean ? mean(each)
                                        : sum(each);
}

Tensor at_least_0(const Tensor& x) { return clamp(x, 0); }

// The cosines of the rows of x and y, with 1e-12 added to the squares of their norms.
Tensor cosines(const Tensor& x, const Tensor& y) {
  const auto norms = [](const Tensor& rows) { return sqrt(add(sum(square(rows), {-1}), 1e-12)); };
  return div(sum(mul(x, y), {-1}), mul(norms(x), norms(y)));
}

}  // namespace

Tensor triplet_margin_loss(const Tensor& anchor_, const Tensor& positive_, const Tensor& negative_,
                           const TripletMarginLossOptions& options) {
  constexpr const char* kName = "triplet_margin_loss";
  const DType dtype = check_inputs(kName, {&anchor_, &positive_, &negative_});
  check(options.margin > 0, kName, ": got margin ", options.margin, ", expected more than 0");
  check(options.p == options.p, kName, ": got p = nan, expected a number or an infinity");
  const int rank = anchor_.dim();
  check(rank > 0 && positive_.dim() == rank && negative_.dim() == rank, kName, ": got shapes ",
        anchor_.sizes(), ", ", positive_.sizes(), " and ", negative_.sizes(),
        ", expected three of [N, D] or of [D]");
  const Dims pairs = broadcast_sizes(kName, anchor_.sizes(), positive_.sizes());
  broadcast_sizes(kName, pairs, negative_.sizes());
  const PrecisionScope no_policy(Precision::full());
  const Tensor anchor = cast(anchor_, dtype), positive = cast(positive_, dtype),
               negative = cast(negative_, dtype);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, options.p, options.eps);
  };
  Tensor away = distance(anchor, negative);
  if (options.swap) {
    away = minimum(away, distance(positive, negative));
  }
  return reduced(kName, at_least_0(add(sub(distance(anchor, positive), away), options.margin)),
                 options.reduction);
}

Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target_,
                             double margin, Reduction reduction) {
  constexpr const char* kName = "cosine_embedding_loss";
  const DType dtype = check_inputs(kName, {&x1, &x2});
  const Tensor target = signs_of(kName, target_, x1);
  const int rank = x1.dim();
  const bool fits = (rank == 1 || rank == 2) && x1.sizes() == x2.sizes() &&
                    target.sizes() == (rank == 2 ? Dims{x1.size(0)} : Dims{});
  check(fits, kName, ": got inputs of shapes ", x1.sizes(), " and ", x2.sizes(),
        " and a target of shape ", target.sizes(),
        ", expected [N, D], [N, D] and [N], or [D], [D] and a scalar");
  const PrecisionScope no_policy(Precision::full());
  const Tensor cosine = cosines(cast(x1, dtype), cast(x2, dtype));
  const Tensor apart = where(eq(target, -1), at_least_0(add(cosine, -margin)), 0);
  return reduced(kName, where(eq(target, 1), sub(1, cosine), apart), reduction);
}

Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target_, double margin,
                           Reduction reduction) {
  constexpr const char* kName = "margin_ranking_loss";
  const DType dtype = check_inputs(kName, {&x1, &x2});
  const Tensor target = signs_of(kName, target_, x1);
  broadcast_sizes(kName, broadcast_sizes(kName, x1.sizes(), x2.sizes()), target.sizes());
  const PrecisionScope no_policy(Precision::full());
  const Tensor lead = sub(cast(x2, dtype), cast(x1, dtype));
  return reduced(kName, at_least_0(add(mul(lead, cast(target, dtype)), margin)), reduction);
}

Tensor hinge_embedding_loss(const Tensor& x_, const Tensor& target_, double margin,
                            Reduction reduction) {
  constexpr const char* kName = "hinge_embedding_loss";
  const DType dtype = check_inputs(kName, {&x_});
  const Tensor target = signs_of(kName, target_, x_);
  broadcast_sizes(kName, x_.sizes(), target.sizes());
  const PrecisionScope no_policy(Precision::full());
  const Tensor x = cast(x_, dtype);
  // As in PyTorch a target that is neither 1 nor -1 has both terms.
  const Tensor near = where(ne(target, -1), x, 0);
  const Tensor far = where(ne(target, 1), at_least_0(sub(margin, x)), 0);
  return reduced(kName, add(near, far), reduction);
}

Tensor gaussian_nll_loss(const Tensor& x_, const Tensor& target_, const Tensor& var_,
                         const GaussianNLLLossOptions& options) {
  constexpr const char* kName = "gaussian_nll_loss";
  const DType dtype = check_inputs(kName, {&x_, &target_, &var_});
  check(options.eps > 0, kName, ": got eps ", options.eps, ", expected more than 0");
  broadcast_sizes(kName, x_.sizes(), target_.sizes());
  Dims rows = x_.sizes(), row = x_.sizes();
  if (!rows.empty()) {
    row[row.size() - 1] = 1;
    rows = Dims(std::span(row.begin(), static_cast<size_t>(row.size() - 1)));
  }
  check(var_.sizes() == x_.sizes() || var_.sizes() == row || var_.sizes() == rows, kName,
        ": got an input of shape ", x_.sizes(), " and var of shape ", var_.sizes(), ", expected ",
        x_.sizes(), ", ", row, " or ", rows);
  const PrecisionScope no_policy(Precision::full());
  const Tensor x = cast(x_, dtype), target = cast(target_, dtype);
  Tensor var = cast(var_.sizes() == x_.sizes() ? var_ : reshape(var_, row), dtype);
  const Tensor known = var.detach(), negative = lt(known, 0);
  check(!var.device().is_cpu() || any(negative).item() == 0, kName,
        ": got a negative element in var, expected variances of at least 0");
  const Tensor raised = clamp(masked_fill(known, negative, NAN), options.eps);
  var = add(var, where(ge(known, options.eps), 0, sub(raised, known)));  // inf - inf is NaN
  Tensor each = mul(add(log(var), div(square(sub(x, target)), var)), 0.5);
  each = options.full ? add(each, kHalfLogTwoPi) : each;
  return reduced(kName, each, options.reduction);
}

Tensor poisson_nll_loss(const Tensor& x_, const Tensor& target_,
                        const PoissonNLLLossOptions& options) {
  constexpr const char* kName = "poisson_nll_loss";
  const DType dtype = check_inputs(kName, {&x_, &target_});
  check_eps(kName, options.eps);
  broadcast_sizes(kName, x_.sizes(), target_.sizes());
  const PrecisionScope no_policy(Precision::full());
  const Tensor x = cast(x_, dtype), target = cast(target_, dtype);
  Tensor each = options.log_input ? sub(exp(x), mul(target, x))
                                  : sub(x, mul(target, log(add(x, options.eps))));
  if (options.full) {
    const Tensor few = le(target.detach(), 1), n = masked_fill(target, few, 2);
    const Tensor stirling = add(sub(mul(add(n, 0.5), log(n)), n), kHalfLogTwoPi);
    each = add(each, masked_fill(stirling, few, 0));
  }
  return reduced(kName, each, options.reduction);
}

}  // namespace binade
