// Addresses of elements of strided operands on the device. The host merges dimensions
// (StridedLoop); a kernel turns the index of an element in that order into one address per operand.
// With fewer than 2^31 elements it uses 32-bit arithmetic, with multiplications instead of
// divisions.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/base/strided.h>

namespace binade::kernels {

// n / divisor for n < 2^31 and 1 <= divisor < 2^31, as a multiplication and a shift (Granlund and
// Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
class FastDivider {
 public:
  FastDivider() = default;
  explicit FastDivider(uint32_t divisor) : divisor_(divisor) {
    while ((uint64_t(1) << shift_) < divisor) {
      ++shift_;
    }
    const uint64_t power = uint64_t(1) << shift_;
    multiplier_ = static_cast<uint32_t>(((power - divisor) << 32) / divisor + 1);
  }
  BINADE_HD uint32_t divisor() const { return divisor_; }
  BINADE_HD uint32_t quotient(uint32_t n) const {
    const auto high = static_cast<uint32_t>(static_cast<uint64_t>(n) * multiplier_ >> 32);
    return (high + n) >> shift_;
  }

 private:
  uint32_t divisor_ = 1, multiplier_ = 1, shift_ = 0;
};

// Pass it to kernels as `const __grid_constant__`, so that its arrays stay in constant memory.
template <int kOperands>
struct StridedIndex {
  int32_t dims = 1;
  bool wide = false;  // 64-bit divisions
  int64_t numel = 0;
  FastDivider divider[kMaxDims];
  int64_t size[kMaxDims];
  int64_t stride[kOperands][kMaxDims];  // bytes
  std::byte* data[kOperands];

  StridedIndex() = default;
  explicit StridedIndex(const StridedLoop& loop) : dims(loop.dims()), numel(loop.numel()) {
    wide = numel >= int64_t(1) << 31;
    for (int d = 0; d < dims; ++d) {
      set_size(d, loop.size(d));
      for (int k = 0; k < kOperands; ++k) {
        stride[k][d] = loop.stride(k, d);
      }
    }
    for (int k = 0; k < kOperands; ++k) {
      data[k] = loop.data(k);
    }
  }

  // Numbers elements in row-major order of the views, which must have equal sizes.
  static StridedIndex row_major(const View* const (&views)[kOperands]) {
    StridedIndex index;
    const View& first = *views[0];
    index.numel = first.numel;
    index.wide = index.numel >= int64_t(1) << 31;
    index.dims = first.dim() > 0 ? first.dim() : 1;
    index.set_size(0, 1);
    for (int k = 0; k < kOperands; ++k) {
      index.data[k] = views[k]->data;
      index.stride[k][0] = 0;
      for (int d = 0; d < first.dim(); ++d) {
        const int from = first.dim() - 1 - d;
        index.set_size(d, first.size(from));
        index.stride[k][d] =
            views[k]->strides[from] * static_cast<int64_t>(size_of(views[k]->dtype));
      }
    }
    return index;
  }

  void set_size(int d, int64_t n) {
    size[d] = n;
    if (!wide) {
      divider[d] = FastDivider(static_cast<uint32_t>(n > 0 ? n : 1));
    }
  }

  // Computes the addresses of element i of every operand.
  BINADE_HD void locate(int64_t i, std::byte* (&at)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) {
      at[k] = data[k];
    }
    advance(i, at);
  }
  // Moves addresses of element 0 to element i.
  BINADE_HD void advance(int64_t i, std::byte* (&at)[kOperands]) const {
    const int last = dims - 1;
    if (last == 0) {
      step(at, 0, i);
    } else if (!wide) {
      auto rest = static_cast<uint32_t>(i);
#ifdef __CUDACC__
#pragma unroll 1
#endif
      for (int d = 0; d < last; ++d) {
        const uint32_t above = divider[d].quotient(rest);
        step(at, d, rest - above * divider[d].divisor());
        rest = above;
      }
      step(at, last, rest);
    } else {
#ifdef __CUDACC__
#pragma unroll 1
#endif
      for (int d = 0; d < last; ++d) {
        const int64_t above = i / size[d];
        step(at, d, i - above * size[d]);
        i = above;
      }
      step(at, last, i);
    }
  }

 private:
  BINADE_HD void step(std::byte* (&at)[kOperands], int d, int64_t index) const {
    for (int k = 0; k < kOperands; ++k) {
      at[k] += index * stride[k][d];
    }
  }
};

}  // namespace binade::kernels
