// Classification losses: cross_entropy, with class indices or probabilities, and nll_loss; ctc_loss
// is log-softmax, then one kernel, whose gradient goes to the logits directly.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/cross_entropy.h>
#include <binade/kernels/loss/ctc_loss.h>
#include <binade/kernels/loss/nll_loss.h>
#include <binade/kernels/loss/soft_cross_entropy.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/reduce/reduce.h>
#include <binade/kernels/softmax/softmax.h>

#include <algorithm>
#include <limits>

namespace binade {
namespace {

constexpr Op kCrossEntropy{"cross_entropy", OpClass::loss, true};

void total(const Tensor& rows, const Tensor& sum) {  // [rows] -> []
  kernels::reduce_forward({.op = kernels::Reduce::sum, .x = rows, .y = make_view(sum, {1}, {1})});
}

// Reduces the losses of the rows into `loss`: the sum, or for the mean the sum divided by the sum
// of the weights. Returns the divisor of a row's gradient.
Tensor reduce_rows(Reduction reduction, const Tensor& row_weight, Tensor& loss) {
  Tensor divisor = full({}, 1, loss.dtype(), loss.device());
  if (reduction == Reduction::none) {
    return divisor;
  }
  const auto flat = [](const Tensor& t) { return make_view(t, {t.numel()}, {1}); };
  Tensor sum = empty({}, loss.dtype(), loss.device());
  total(flat(loss), sum);
  if (reduction == Reduction::mean) {
    total(flat(row_weight), divisor);
    kernels::binary_forward({.op = kernels::Binary::div, .a = sum, .b = divisor, .y = sum});
  }
  loss = sum;
  return divisor;
}

// dloss / dloss_i for every row, of these sizes.
Tensor row_scale_of(const Tensor& dy, const Tensor& divisor, const Dims& rows) {
  Tensor scale = empty(rows, dy.dtype(), dy.device());
  kernels::binary_forward({.op = kernels::Binary::div, .a = dy, .b = divisor, .y = scale});
  return scale;
}

Tensor statistic(const Tensor& weight, DType compute) {
  return weight.defined() ? contiguous(cast(weight.detach(), compute)) : Tensor();
}

void check_options(const char* op, Reduction reduction, const Tensor& weight, const Tensor& logits,
                   const Tensor& target) {
  check(reduction == Reduction::none || reduction == Reduction::mean || reduction == Reduction::sum,
        op, ": got a reduction that is not none, mean or sum");
  check(target.device() == logits.device() &&
            (!weight.defined() || weight.device() == logits.device()),
        op, ": got an input on ", logits.device(), " and a target on ", target.device(),
        weight.defined() ? text(", a weight on ", weight.device()) : "",
        ", expected one device; move them with to()");
  const int64_t classes = logits.size(1);
  check(!weight.defined() ||
            (weight.dim() == 1 && weight.size(0) == classes && is_floating(weight.dtype())),
        op, ": got a weight of shape ", weight.defined() ? weight.sizes() : Dims{}, " and dtype ",
        weight.defined() ? weight.dtype() : logits.dtype(), ", expected [", classes,
        "] of a floating dtype, one factor per class");
}

// [N, C, ...] without C.
Dims sizes_of_targets(const Tensor& logits) {
  Dims sizes{logits.size(0)};
  for (int i = 2; i < logits.dim(); ++i) {
    sizes.push_back(logits.sizes()[i]);
  }
  return sizes;
}

// [N, C, ...] as [rows, C].
Tensor as_rows(const Tensor& logits, int64_t rows) {
  Dims order{0};
  for (int i = 2; i < logits.dim(); ++i) {
    order.push_back(i);
  }
  order.push_back(1);
  return logits.dim() == 2 ? logits : reshape(permute(logits, order), {rows, logits.size(1)});
}

// Targets as weighted probabilities [rows, C], f32 or f64: w_c ((1 - s) p_c + s / C).
Tensor weighted(const Tensor& p, const Tensor& weight, double smoothing) {
  const Tensor q = add(mul(p, 1 - smoothing), smoothing / static_cast<double>(p.size(1)));
  return weight.defined() ? mul(q, weight) : q;
}

// The gradient of z for row losses sum_c q_c (lse - z_c), as ops: for a recorded backward.
Tensor recorded_row_gradient(const Tensor& dy, const Tensor& z, const Tensor& q,
                             const Tensor& divisor) {
  const PrecisionScope exact(Precision::full());
  const Tensor scale = div(dy, divisor);
  const Tensor share = mul(softmax(cast(z, q.dtype()), 1), sum(q, {1}, true));
  const Tensor dz = mul(sub(share, q), scale.dim() == 1 ? unsqueeze(scale, 1) : scale);
  return cast(dz, z.dtype());
}

// loss_i = (1 - s) w_t (lse - z_t) + s / C sum_c w_c (lse - z_c); logits [rows, classes]
Tensor rows_cross_entropy(const Tensor& z, const Tensor& target,
                          const CrossEntropyLossOptions& options) {
  const DType compute = compute_dtype(z.dtype());
  const Dims rows{z.size(0)};
  const Tensor weight = statistic(options.weight, compute);
  const Device device = z.device();
  Tensor loss = empty(rows, compute, device), row_weight = empty(rows, compute, device),
         lse = empty(rows, compute, device);
  kernels::cross_entropy_forward({.logits = z,
                                  .target = target,
                                  .weight = weight,
                                  .row_loss = loss,
                                  .row_weight = row_weight,
                                  .lse = lse,
                                  .ignore_index = options.ignore_index,
                                  .label_smoothing = options.label_smoothing});
  const Tensor divisor = reduce_rows(options.reduction, row_weight, loss);
  return kCrossEntropy.record(
      {z}, loss, save(z, target, weight, lse, divisor),
      [ignore = options.ignore_index, smoothing = options.label_smoothing](
          const Tensor& dy, Needs needs, const Tensor& z, const Tensor& target,
          const Tensor& weight, const Tensor& lse, const Tensor& divisor) -> Grads {
        if (grad_enabled()) {
          const Tensor ignored = eq(target, static_cast<double>(ignore));
          const Tensor p = one_hot(masked_fill(target, ignored, 0), z.size(1)).to(lse.dtype());
          const Tensor q = masked_fill(weighted(p, weight, smoothing), unsqueeze(ignored, 1), 0);
          return {recorded_row_gradient(dy, z, q, divisor)};
        }
        const Tensor row_scale = row_scale_of(dy, divisor, lse.sizes());
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

// loss_i = sum_c w_c q_c (lse - z_c), q the smoothed probabilities; z, p [rows, classes]
Tensor rows_soft_cross_entropy(const Tensor& z, const Tensor& p,
                               const CrossEntropyLossOptions& options) {
  const DType compute = compute_dtype(z.dtype());
  const Tensor weight = statistic(options.weight, compute);
  Tensor loss = empty({z.size(0)}, compute, z.device());
  kernels::soft_cross_entropy_forward({.logits = z,
                                       .target = p,
                                       .weight = weight,
                                       .row_loss = loss,
                                       .label_smoothing = options.label_smoothing});
  const Tensor divisor =
      reduce_rows(options.reduction, full({z.size(0)}, 1, compute, z.device()), loss);
  return kCrossEntropy.record(
      {z}, loss, save(z, p, weight, divisor),
      [smoothing = options.label_smoothing](const Tensor& dy, Needs needs, const Tensor& z,
                                            const Tensor& p, const Tensor& weight,
                                            const Tensor& divisor) -> Grads {
        if (grad_enabled()) {
          const Tensor q = weighted(cast(p, divisor.dtype()), weight, smoothing);
          return {recorded_row_gradient(dy, z, q, divisor)};
        }
        const Tensor row_scale = row_scale_of(dy, divisor, {z.size(0)});
        Tensor dz = needs.out_like(0, z);
        kernels::soft_cross_entropy_backward({.logits = z,
                                              .target = p,
                                              .weight = weight,
                                              .row_scale = row_scale,
                                              .dlogits = dz,
                                              .label_smoothing = smoothing});
        return {dz};
      });
}

// The same loss composed of ops, for targets that require a gradient. As parts of a loss the ops
// run in f32 under every policy.
Tensor recorded_soft_cross_entropy(const Tensor& z_, const Tensor& p_,
                                   const CrossEntropyLossOptions& options) {
  const PrecisionScope exact(Precision::full());
  const DType compute = compute_dtype(z_.dtype());
  const Tensor q =
      weighted(cast(p_, compute), statistic(options.weight, compute), options.label_smoothing);
  const Tensor rows = neg(sum(q * log_softmax(cast(z_, compute), 1), {1}));
  return options.reduction == Reduction::none  ? rows
         : options.reduction == Reduction::sum ? sum(rows)
                                               : mean(rows);
}

Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target,
                          const CrossEntropyLossOptions& options) {
  const Dims rows = sizes_of_targets(logits);
  const int64_t count = element_count(rows);
  const Tensor z = as_rows(logits, count);
  const Tensor p = as_rows(cast(target, logits.dtype()), count);
  Tensor loss = p.requires_grad() ? recorded_soft_cross_entropy(z, p, options)
                                  : rows_soft_cross_entropy(z, p, options);
  return options.reduction == Reduction::none ? reshape(loss, rows) : loss;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits_, const Tensor& target,
                     const CrossEntropyLossOptions& options) {
  auto [logits] = kCrossEntropy.enter(logits_);
  check(logits.defined() && target.defined(),
        "cross_entropy: got an undefined tensor, expected one with a value; assign it first");
  check(logits.dim() >= 2 && is_floating(logits.dtype()), "cross_entropy: got logits of shape ",
        logits.sizes(), " and dtype ", logits.dtype(),
        ", expected [N, C, ...] of a floating dtype; unsqueeze(x, 0) makes a batch of one sample");
  const Dims expected = sizes_of_targets(logits);
  const bool soft = is_floating(target.dtype()) && target.sizes() == logits.sizes();
  check(soft || (target.dtype() == DType::i64 && target.sizes() == expected),
        "cross_entropy: got a target of shape ", target.sizes(), " and dtype ", target.dtype(),
        ", expected i64 ", expected, " or probabilities of the shape of logits ", logits.sizes(),
        "; convert labels with to(DType::i64), and drop sizes of 1 with squeeze()");
  check_options("cross_entropy", options.reduction, options.weight, logits, target);
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1,
        "cross_entropy: got label_smoothing ", options.label_smoothing, ", expected 0 to 1");
  if (soft) {
    check(options.ignore_index < 0, "cross_entropy: got ignore_index ", options.ignore_index,
          " with probabilities as targets, expected class indices, or a negative ignore_index");
    return soft_cross_entropy(logits, target, options);
  }
  const int64_t rows = target.numel();
  Tensor loss = rows_cross_entropy(as_rows(logits, rows), reshape(target, {rows}), options);
  return options.reduction == Reduction::none ? reshape(loss, expected) : loss;
}

Tensor nll_loss(const Tensor& log_probs_, const Tensor& target, const NLLLossOptions& options) {
  static constexpr Op kNll{"nll_loss", OpClass::loss};
  auto [log_probs] = kNll.enter(log_probs_);
  check_floating("nll_loss", log_probs);
  check_defined("nll_loss", target);
  check(log_probs.dim() >= 2, "nll_loss: got log-probabilities of shape ", log_probs.sizes(),
        ", expected [N, C, ...]; unsqueeze(x, 0) makes a batch of one sample");
  const Dims expected = sizes_of_targets(log_probs);
  check(target.dtype() == DType::i64 && target.sizes() == expected,
        "nll_loss: got a target of shape ", target.sizes(), " and dtype ", target.dtype(),
        ", expected i64 ", expected, "; convert it with to(DType::i64)");
  check_options("nll_loss", options.reduction, options.weight, log_probs, target);
  const int64_t samples = log_probs.size(0), classes = log_probs.size(1);
  int64_t inner = 1;
  for (int i = 2; i < log_probs.dim(); ++i) {
    inner *= log_probs.sizes()[i];
  }
  const Tensor x = reshape(log_probs, {samples, classes, inner});
  const Tensor t = reshape(target, {samples, inner});
  const DType compute = compute_dtype(x.dtype());
  const Tensor weight = statistic(options.weight, compute);
  Tensor loss = empty({samples, inner}, compute, x.device());
  const Tensor row_weight = empty_like(loss);
  kernels::nll_loss_forward({.log_probs = x,
                             .target = t,
                             .weight = weight,
                             .row_loss = loss,
                             .row_weight = row_weight,
                             .ignore_index = options.ignore_index});
  const Tensor divisor = reduce_rows(options.reduction, row_weight, loss);
  loss = kNll.record(
      {x}, loss, save(t, weight, divisor),
      [ignore = options.ignore_index](const Tensor& dy, Needs needs, const Tensor& t,
                                      const Tensor& weight, const Tensor& divisor) -> Grads {
        const Tensor row_scale = row_scale_of(dy, divisor, t.sizes());
        Tensor dx = needs.out(0);
        kernels::nll_loss_backward({.target = t,
                                    .weight = weight,
                                    .row_scale = row_scale,
                                    .dlog_probs = dx,
                                    .ignore_index = ignore});
        return {dx};
      });
  return options.reduction == Reduction::none ? reshape(loss, expected) : loss;
}
namespace {

constexpr Op kCtcLoss{"ctc_loss", OpClass::loss};

// Concatenated targets as [N, S], padded; reads the lengths on the host.
Tensor padded(const Tensor& targets, const Tensor& target_lengths) {
  const Tensor lengths = target_lengths.to(Device{}), all = targets.to(Device{});
  int64_t longest = 0, total = 0;
  for (int64_t n = 0; n < lengths.numel(); ++n) {
    const auto length = static_cast<int64_t>(lengths.at(n));
    check(length >= 0, "ctc_loss: got target length ", length, " of sample ", n,
          ", expected 0 or more");
    longest = std::max(longest, length);
    total += length;
  }
  check(total == all.numel(), "ctc_loss: got ", all.numel(), " targets in one dimension, expected ",
        total, ", the sum of target_lengths");
  Tensor rows = zeros({lengths.numel(), longest}, DType::i64);
  int64_t at = 0;
  for (int64_t n = 0; n < lengths.numel(); ++n) {
    for (int64_t i = 0; i < static_cast<int64_t>(lengths.at(n)); ++i) {
      rows.data<int64_t>()[n * longest + i] = all.data<int64_t>()[at++ * all.strides()[0]];
    }
  }
  return rows.to(targets.device());
}

void check_sequences(const Tensor& logits, const Tensor& targets, const Tensor& input_lengths,
                     const Tensor& target_lengths, const CTCLossOptions& options) {
  check_floating("ctc_loss", logits);
  check(logits.dim() == 3, "ctc_loss: got logits of shape ", logits.sizes(),
        ", expected [T, N, C]");
  check(options.blank >= 0 && options.blank < logits.size(2), "ctc_loss: got blank ", options.blank,
        ", expected one of ", logits.size(2), " classes");
  check(targets.defined() && targets.dtype() == DType::i64 &&
            (targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == logits.size(1))),
        "ctc_loss: got targets that are not i64 [", logits.size(1), ", S] or one after the other");
  for (const Tensor* lengths : {&input_lengths, &target_lengths}) {
    check(lengths->defined() && lengths->dtype() == DType::i64 &&
              lengths->sizes() == Dims{logits.size(1)},
          "ctc_loss: got input_lengths or target_lengths that are not i64 [", logits.size(1), "]");
  }
  for (const Tensor* t : {&targets, &input_lengths, &target_lengths}) {
    check(t->device() == logits.device(), "ctc_loss: got logits on ", logits.device(),
          " and targets or lengths on ", t->device(), ", expected one device; move them with to()");
  }
  check(options.reduction == Reduction::none || options.reduction == Reduction::mean ||
            options.reduction == Reduction::sum,
        "ctc_loss: got a reduction that is not none, mean or sum");
}

Tensor log_probabilities(const Tensor& logits) {
  Tensor x = empty(logits.sizes(), compute_dtype(logits.dtype()), logits.device());
  kernels::copy({.x = logits, .y = x});
  kernels::softmax_forward({.x = x, .y = x, .dim = 2, .log = true});
  return x;
}

}  // namespace

Tensor ctc_loss(const Tensor& logits_, const Tensor& targets_, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossOptions& options) {
  auto [logits] = kCtcLoss.enter(logits_);
  check_sequences(logits, targets_, input_lengths, target_lengths, options);
  const Tensor targets = targets_.dim() == 1 ? padded(targets_, target_lengths) : targets_;
  const int64_t times = logits.size(0), samples = logits.size(1);
  const Tensor log_probs = log_probabilities(logits);
  const DType compute = log_probs.dtype();
  const bool mean = options.reduction == Reduction::mean;
  Tensor alpha = empty({samples, times, 2 * targets.size(1) + 1}, compute, logits.device());
  Tensor nll = empty({samples}, compute, logits.device()), loss = empty_like(nll);
  kernels::ctc_loss_forward({.sequences = {.log_probs = log_probs,
                                           .targets = targets,
                                           .input_lengths = input_lengths,
                                           .target_lengths = target_lengths,
                                           .blank = options.blank,
                                           .mean = mean,
                                           .zero_infinity = options.zero_infinity},
                             .alpha = alpha,
                             .nll = nll,
                             .loss = loss});
  if (options.reduction != Reduction::none) {
    Tensor sum = empty({}, compute, logits.device());
    kernels::reduce_forward({.op = kernels::Reduce::sum, .x = loss, .y = make_view(sum, {1}, {1})});
    if (mean && samples == 0) {
      kernels::fill({.y = sum, .value = std::numeric_limits<double>::quiet_NaN()});
    }
    loss = sum;
  }
  return kCtcLoss.record(
      {logits}, loss, save(log_probs, targets, input_lengths, target_lengths, alpha, nll),
      [blank = options.blank, mean, zero_infinity = options.zero_infinity](
          const Tensor& dy, Needs needs, const Tensor& log_probs, const Tensor& targets,
          const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& alpha,
          const Tensor& nll) -> Grads {
        Tensor dlogits = needs.out(0);
        kernels::ctc_loss_backward(
            {.sequences = {.log_probs = log_probs,
                           .targets = targets,
                           .input_lengths = input_lengths,
                           .target_lengths = target_lengths,
                           .blank = blank,
                           .mean = mean,
                           .zero_infinity = zero_infinity},
             .alpha = alpha,
             .nll = nll,
             .dy = dy.dim() == 1 ? dy : make_view(dy, {log_probs.size(1)}, {0}),
             .dlogits = dlogits});
        return {dlogits};
      });
}

}  // namespace binade
