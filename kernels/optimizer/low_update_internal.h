// Low updates on the CPU: the range kernels of the optimizers work on a block of f32 values, as on
// masters. The block is read from the parameters before the step and rounded into them afterwards.
#pragma once
#include <binade/kernels/optimizer/low_update.h>
#include <binade/kernels/optimizer/optimizer_isa_internal.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

inline constexpr int64_t kLowBlock = 8192;

void check_low(const char* op, const View& param, const View& master, const LowUpdate& low);

// While a block exists, it is the master of the range. REQUIRES: at most kLowBlock elements.
class LowBlock {
 public:
  // at: the number of the range's first element within the step's.
  LowBlock(const LowUpdate& low, StepRange& range, int64_t at);
  LowBlock(const LowBlock&) = delete;
  LowBlock& operator=(const LowBlock&) = delete;
  // Rounds the values into the parameters.
  void store(const RangeScalars& w, bool on_device);

 private:
  const LowUpdate& low_;
  StepRange& range_;
  int64_t at_;
  float values_[kLowBlock];
};

// Calls step(range, at) for elements [begin, end) of the step `a`: once, or with low updates block
// by block.
template <class Args, class F>
void step_elements(const Args& a, const RangeScalars& w, const StepRange& all, int64_t begin,
                   F&& step) {
  if (a.low.how == LowUpdates::nearest) {
    step(all, begin);
    return;
  }
  for (int64_t at = 0; at < all.count; at += kLowBlock) {
    StepRange range = all;
    const auto bytes = at * static_cast<int64_t>(size_of(range.dtype));
    range.param = static_cast<std::byte*>(all.param) + bytes;
    range.grad = static_cast<const std::byte*>(all.grad) + bytes;
    range.count = all.count - at < kLowBlock ? all.count - at : kLowBlock;
    LowBlock block(a.low, range, begin + at);
    step(range, begin + at);
    block.store(w, static_cast<bool>(a.step_scalars));
  }
}

}  // namespace binade::kernels
