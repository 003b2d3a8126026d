// Splits optimizer steps over the threads of the CPU (internal to kernels/).
#pragma once
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/view.h>
#include <binade/kernels/optimizer/optimizer_isa_internal.h>

#include <algorithm>

namespace binade::kernels {

inline constexpr int64_t kElementsPerTask = 16384;

// Calls body(begin, end) on ranges of elements that start at multiples of a block.
template <class F>
void for_blocks(int64_t count, F&& body) {
  constexpr int64_t kBlock = 4096;
  parallel_for(
      (count + kBlock - 1) / kBlock, kElementsPerTask / kBlock,
      [&](int64_t begin, int64_t end) { body(begin * kBlock, std::min(end * kBlock, count)); });
}

inline StepRange step_range(const View& param, const View& master, const View& grad, int64_t begin,
                            int64_t end) {
  return {.dtype = param.dtype,
          .param = element(param, begin),
          .master = element(master, begin),
          .grad = element(grad, begin),
          .count = end - begin};
}

}  // namespace binade::kernels
