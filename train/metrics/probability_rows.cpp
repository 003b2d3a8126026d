#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/metrics/probability_rows_internal.h>

#include <algorithm>

namespace binade::train {

Tensor probability_rows(const Tensor& scores) {
  constexpr int64_t kLooked = 8;
  constexpr double kRounding = 1e-2;  // of a sum of f16 probabilities
  const Tensor some =
      narrow(scores, 0, 0, std::min(scores.size(0), kLooked)).to(compute_dtype(scores.dtype()));
  const Tensor whole = sum(some, {1});
  const Tensor one = logical_and(gt(whole, 1 - kRounding), lt(whole, 1 + kRounding));
  const Tensor inside = all(logical_and(ge(some, 0.0), le(some, 1.0)), {1});
  const Tensor like = logical_and(inside, one);
  return cat({reshape(sum(like), {1}), reshape(sum(ones_like(like)), {1})});
}

void check_logits(const std::string& metric, int64_t like_probabilities, int64_t looked_at,
                  const char* advice) {
  check(looked_at == 0 || like_probabilities < looked_at, metric,
        ": got scores that seem to be probabilities (from 0 to 1, with the sum 1), expected "
        "logits; ",
        advice);
}

}  // namespace binade::train
