// The operands of convolution as loaders of the block tiles (gemm_loader.cuh): they gather 16-byte
// chunks of channels from images and weights without an im2col buffer. place() computes once what a
// thread needs to know of its pixel or tap; a chunk then costs one multiply-high per index, two
// comparisons with the image's edges, and the address.
#pragma once
#include <binade/kernels/conv/conv2d_correlation.cuh>
#include <binade/kernels/gemm/gemm_loader.cuh>

namespace binade::kernels {

// Rows: target pixels. k: (vertical tap, horizontal tap, reduced channel).
template <class T>
struct SourcePixels {
  static constexpr bool k_contiguous = true;
  static constexpr int kOutside = -(1 << 30);  // no tap leads from here into an image

  struct Place {
    int64_t offset;  // of the pixel's image, at the coordinates of tap (0, 0)
    int row, column;
  };

  __device__ __forceinline__ SourcePixels(const CorrelationShape& p, const CorrelationTile& tile,
                                          const T* source)
      : vector(p.vector_source),
        p_(p),
        tile_(tile),
        source_(source + static_cast<int64_t>(tile.group) * p.reduced) {}

  __device__ __forceinline__ Place place(int64_t outer) const {
    if (outer >= tile_.rows) {
      return {0, kOutside, kOutside};
    }
    int i, j;
    const int64_t image = tile_.pixel(outer, i, j);
    const int row = i * p_.vertical.source_step + tile_.v->source0;
    const int column = j * p_.horizontal.source_step + tile_.h->source0;
    return {
        image * p_.source_strides[0] + row * p_.source_strides[1] + column * p_.source_strides[2],
        row, column};
  }

  __device__ __forceinline__ const T* chunk(const Place& place, int64_t k, int& valid) const {
    int64_t offset;
    const bool inside = find(place, static_cast<int>(k), offset);
    valid = inside ? kChunk<T> : 0;
    return source_ + (inside ? offset : 0);
  }
  __device__ __forceinline__ T element(const Place& place, int64_t k, int i) const {
    int64_t offset;
    return find(place, static_cast<int>(k) + i, offset) ? source_[offset] : T(0.0f);
  }

  bool vector;

 private:
  // Finds the offset of k for this pixel. Returns whether it is inside the image.
  __device__ __forceinline__ bool find(const Place& place, int k, int64_t& offset) const {
    int channel, j;
    const int tap = divide(p_.by_reduced, k, channel), i = divide(tile_.h->by_taps, tap, j);
    const int down = i * p_.vertical.tap_step, right = j * p_.horizontal.tap_step;
    offset = place.offset + (down * p_.source_strides[1] + right * p_.source_strides[2] + channel);
    return k < tile_.k_end &&
           static_cast<unsigned>(place.row + down) <
               static_cast<unsigned>(p_.vertical.source_size) &&
           static_cast<unsigned>(place.column + right) <
               static_cast<unsigned>(p_.horizontal.source_size);
  }

  const CorrelationShape& p_;
  const CorrelationTile& tile_;
  const T* source_;
};

// For backward to the data. Columns: input channels, contiguous. k as above, with output channels.
template <class T>
struct WeightTaps {
  static constexpr bool k_contiguous = false;

  struct Place {
    int channel, valid;
  };

  __device__ __forceinline__ WeightTaps(const CorrelationShape& p, const CorrelationTile& tile,
                                        const T* w)
      : vector(p.vector_weights),
        p_(p),
        tile_(tile),
        w_(w + static_cast<int64_t>(tile.group) * p.reduced * p.weight_o +
           tile.v->kernel0 * p.weight_r + tile.h->kernel0 * p.weight_s) {}

  __device__ __forceinline__ Place place(int64_t outer) const {
    return {static_cast<int>(outer), clamp_count(p_.produced - outer, kChunk<T>)};
  }
  __device__ __forceinline__ const T* chunk(const Place& place, int64_t k, int& valid) const {
    valid = k < tile_.k_end ? place.valid : 0;
    return valid ? find(place, static_cast<int>(k)) : w_;
  }
  __device__ __forceinline__ T element(const Place& place, int64_t k, int i) const {
    return k < tile_.k_end && i < place.valid ? find(place, static_cast<int>(k))[i] : T(0.0f);
  }

  bool vector;

 private:
  __device__ __forceinline__ const T* find(const Place& place, int k) const {
    int o, j;
    const int tap = divide(p_.by_reduced, k, o), i = divide(tile_.h->by_taps, tap, j);
    return w_ + o * p_.weight_o + i * p_.vertical.kernel_step * p_.weight_r +
           j * p_.horizontal.kernel_step * p_.weight_s + place.channel;
  }

  const CorrelationShape& p_;
  const CorrelationTile& tile_;
  const T* w_;
};

// Backward to the weight: dw [O, (R, S, C)] = dy^T x, where k runs over the pixels of dy.
struct WeightGradient {
  int groups = 1, group_c = 0, group_o = 0, columns = 0;  // columns: R S group_c
  int height = 0, width = 0, row_step = 1, column_step = 1;
  int tap_row_step = 1, tap_column_step = 1, pad_row = 0, pad_column = 0;
  int64_t pixels = 0, image_pixels = 0;
  int64_t splits = 1, split_pixels = 0;  // blocks that share a sum, and their pixels
  int64_t x_strides[3] = {};             // image, row, column; channels: 1
  int64_t dy_stride = 0;                 // from pixel to pixel; channels: 1
  FastDivider by_p, by_q, by_s, by_c;
  bool vector_x = false, vector_dy = false, vector_partials = false;
};

// Columns: (kernel row, kernel column, channel), channels contiguous. k: output pixels, counted
// from `first`.
template <class T>
struct ImagePatches {
  static constexpr bool k_contiguous = false;

  struct Place {
    int64_t offset;  // of the channel under this tap, at output pixel (0, 0)
    int row, column, outer;
  };

  __device__ __forceinline__ ImagePatches(const WeightGradient& p, const T* x, int group,
                                          int64_t first, int count)
      : vector(p.vector_x), p_(p), k_end_(count) {
    const int64_t image = first / p.image_pixels;
    x_ = x + image * p.x_strides[0] + static_cast<int64_t>(group) * p.group_c;
    first_ = static_cast<int>(first - image * p.image_pixels);
  }

  __device__ __forceinline__ Place place(int64_t outer) const {
    int channel, s;
    const int tap = divide(p_.by_c, static_cast<int>(outer), channel), r = divide(p_.by_s, tap, s);
    const int row = r * p_.tap_row_step - p_.pad_row;
    const int column = s * p_.tap_column_step - p_.pad_column;
    return {row * p_.x_strides[1] + column * p_.x_strides[2] + channel, row, column,
            static_cast<int>(outer)};
  }

  __device__ __forceinline__ const T* chunk(const Place& place, int64_t k, int& valid) const {
    int64_t offset;
    const bool inside = find(place, static_cast<int>(k), offset);
    valid = inside ? kChunk<T> : 0;
    return x_ + (inside ? offset : 0);
  }
  __device__ __forceinline__ T element(const Place& place, int64_t k, int i) const {
    int64_t offset;
    const Place one = i == 0 ? place : this->place(place.outer + i);
    return find(one, static_cast<int>(k), offset) ? x_[offset] : T(0.0f);
  }

  bool vector;

 private:
  __device__ __forceinline__ bool find(const Place& place, int k, int64_t& offset) const {
    int p, q;
    const int line = divide(p_.by_q, first_ + k, q), image = divide(p_.by_p, line, p);
    const int down = p * p_.row_step, right = q * p_.column_step;
    offset =
        place.offset + (image * p_.x_strides[0] + down * p_.x_strides[1] + right * p_.x_strides[2]);
    return k < k_end_ && place.outer < p_.columns &&
           static_cast<unsigned>(place.row + down) < static_cast<unsigned>(p_.height) &&
           static_cast<unsigned>(place.column + right) < static_cast<unsigned>(p_.width);
  }

  const WeightGradient& p_;
  const int k_end_;
  int first_;
  const T* x_;
};

}  // namespace binade::kernels
