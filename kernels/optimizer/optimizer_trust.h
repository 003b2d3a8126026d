// LAMB and LARS: steps whose learning rate depends on the norms of each parameter, over flat ranges
// of the parameter arena, under the conventions of kernels/optimizer/optimizer.h. A range holds
// whole parameters, and a table lists their positions.
//
// There are three passes, and the host does not wait: partial sums of squares over chunks of
// parameters (LAMB updates its moments there); the sums per parameter in the order of its chunks,
// and from these its ratio; and the update. Sums are in double, and their order depends on the
// table only.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/optimizer/low_update.h>

namespace binade::kernels {

inline constexpr int64_t kTrustChunk = 8192;  // the maximum number of elements of a chunk

// Rows of two tables that may describe more than this range. Positions, chunks and items are
// numbered over the whole table; origin, first_chunk and first_item are the numbers at which the
// range begins.
struct TrustTable {
  View chunks;          // i64 [chunks, 3]: the first element, the count, the item
  View items;           // i64 [items, 2], parameters: the first chunk, the one after the last
  int64_t origin;       // the position of the range's first element
  int64_t first_chunk;  // the number of the first row of `chunks`
  int64_t first_item;   // the number of the first row of `items`
  View ratios;          // f64 [items]: written
};

// exp_avg, exp_avg_sq as in adam_step; r = (exp_avg / (1 - beta1^step)) / (sqrt(exp_avg_sq / (1 -
// beta2^step)) + eps) + weight_decay p; ratio = |p| / |r|, or 1 if either is 0; p -= lr ratio r.
struct LAMBStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& exp_avg;
  const View& exp_avg_sq;
  const TrustTable& table;
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  double grad_multiplier;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(lamb_step, LAMBStep, param)

// ratio = trust_coefficient |p| / (|g| + weight_decay |p| + eps), or 1 if |p| or |g| is 0;
// momentum_buffer = momentum momentum_buffer + lr ratio (g + weight_decay p); p -= momentum_buffer.
struct LARSStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& momentum_buffer;
  const TrustTable& table;
  double lr, momentum, weight_decay, trust_coefficient, eps;
  double grad_multiplier;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(lars_step, LARSStep, param)

}  // namespace binade::kernels
