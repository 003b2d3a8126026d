#include <binade/nn/losses.h>

namespace binade::nn {

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  check(input.defined() && target.defined() && input.sizes() == target.sizes(), "mse_loss: got ",
        input.defined() ? to_string(input.sizes()) : "nothing", " and ",
        target.defined() ? to_string(target.sizes()) : "nothing", ", expected equal shapes");
  const DType wide = compute_dtype(input.dtype());
  const Tensor loss = square(cast(input, wide) - cast(target, wide));
  switch (reduction) {
    case Reduction::none: return loss;
    case Reduction::sum: return sum(loss);
    default: return mean(loss);
  }
}

double accuracy(const Tensor& logits, const Tensor& target) {
  check(logits.dim() == 2 && target.dim() == 1 && target.size(0) == logits.size(0),
        "accuracy: got ", logits.sizes(), " and ", target.sizes(), ", expected [N, C] and [N]");
  const NoGradGuard guard;
  const Tensor guess = argmax(logits.detach(), 1).to(Device{}), expected = target.to(Device{});
  int64_t right = 0;
  for (int64_t i = 0; i < guess.numel(); ++i) {
    right += guess.at(i) == expected.at(i);
  }
  return guess.numel() ? static_cast<double>(right) / static_cast<double>(guess.numel()) : 0;
}

}  // namespace binade::nn
