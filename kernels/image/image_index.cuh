// The elements of an image [N, C, H, W] in the order of its memory.
#pragma once
#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/strided.cuh>

namespace binade::kernels {

class ImageIndex {
 public:
  // Orders the dimensions from the smallest stride to the largest.
  explicit ImageIndex(const View& image) : order_{3, 2, 1, 0} {
    for (int a = 0; a < 4; ++a) {
      for (int b = a; b > 0 && image.strides[order_[b]] < image.strides[order_[b - 1]]; --b) {
        const int swapped = order_[b];
        order_[b] = order_[b - 1];
        order_[b - 1] = swapped;
      }
    }
    index_.dims = 4;
    index_.numel = image.numel;
    index_.wide = image.numel >= int64_t{1} << 31;
    index_.data[0] = image.data;
    for (int d = 0; d < 4; ++d) {
      const int from = order_[d];
      index_.set_size(d, image.size(from));
      index_.stride[0][d] = image.strides[from] * static_cast<int64_t>(size_of(image.dtype));
    }
  }
  BINADE_HD int64_t numel() const { return index_.numel; }
  // The coordinates n, c, h, w of element i.
  __device__ __forceinline__ void place_of(int64_t i, int64_t (&at)[4]) const {
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      int64_t above;
      if (index_.wide) {
        above = i / index_.size[d];
      } else {
        above = index_.divider[d].quotient(static_cast<uint32_t>(i));
      }
      const int64_t here = i - above * index_.size[d];
      i = above;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        at[k] = order_[d] == k ? here : at[k];
      }
    }
  }
  template <class T>
  __device__ __forceinline__ T* element(int64_t i) const {
    std::byte* at[1];
    index_.locate(i, at);
    return reinterpret_cast<T*>(at[0]);
  }

 private:
  StridedIndex<1> index_;
  int order_[4];  // dimension d of index_ is order_[d] of [N, C, H, W]
};

}  // namespace binade::kernels
