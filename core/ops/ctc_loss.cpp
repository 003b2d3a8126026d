// ctc_loss: log-softmax, then one kernel; the gradient goes to the logits directly.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/ctc_loss.h>
#include <binade/kernels/reduce/reduce.h>
#include <binade/kernels/softmax/softmax.h>

#include <algorithm>
#include <limits>

namespace binade {
namespace {

constexpr Op kOp{"ctc_loss", OpClass::loss};

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
  auto [logits] = kOp.enter(logits_);
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
  return kOp.record(
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
