// Computes, along one dimension, which inputs an output of pooling averages and which outputs hold
// an input, with the same arithmetic on every device.
#pragma once
#include <binade/kernels/base/host_device.h>

#include <cstdint>

namespace binade::kernels {

// A window clipped to the input: [begin, end), and the divisor's factor.
struct PoolSpan {
  int64_t begin, end;
  int64_t count;
};

// Sums of more terms than this are in the compute type over blocks of so many terms and in double
// over the blocks. Usual windows are smaller.
inline constexpr int64_t kPoolSumBlock = 256;

BINADE_HD inline bool is_long_pool_sum(const PoolSpan& rows, const PoolSpan& cols) {
  return (rows.end - rows.begin) * (cols.end - cols.begin) > kPoolSumBlock;
}

struct PoolWindows {
  int64_t inputs, outputs;
  bool adaptive;
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;  // of windows that are not adaptive
  bool count_include_pad = true;

  // The window of an output of average pooling.
  BINADE_HD PoolSpan window(int64_t output) const {
    if (adaptive) {
      const int64_t begin = output * inputs / outputs;
      const int64_t end = ((output + 1) * inputs + outputs - 1) / outputs;
      return {begin, end, end - begin};
    }
    const int64_t start = output * stride - padding;
    int64_t stop = start + kernel;
    stop = stop < inputs + padding ? stop : inputs + padding;
    const int64_t begin = start > 0 ? start : 0, end = stop < inputs ? stop : inputs;
    const int64_t count = count_include_pad ? stop - start : end - begin;
    return {begin, end, count > 1 ? count : 1};
  }

  // The outputs whose windows hold an input, [begin, end); with dilation, all whose range holds it.
  BINADE_HD PoolSpan cover(int64_t input) const {
    int64_t first, last;
    if (adaptive) {
      first = input * outputs / inputs;
      last = ((input + 1) * outputs + inputs - 1) / inputs;
    } else {
      const int64_t behind = input + padding - (kernel - 1) * dilation;
      first = behind > 0 ? (behind + stride - 1) / stride : 0;
      last = (input + padding) / stride + 1;
      last = last < outputs ? last : outputs;
    }
    return {first, last, last - first};
  }

  // At least the size of every window, and of every cover.
  int64_t largest_window() const { return adaptive ? inputs / outputs + 2 : kernel; }
  int64_t largest_cover() const {
    return adaptive ? outputs / inputs + 2 : (kernel - 1) * dilation / stride + 1;
  }
};

}  // namespace binade::kernels
