// Forward and backward to the data as one problem: a correlation. A target pixel sums, over taps of
// the kernel and over channels, source times weight. Along one axis the outputs are cut into
// phases, such that within a phase output number j reads for tap number i the source coordinate
//   j source_step + source0 + i tap_step,    weighted by kernel row    kernel0 + i kernel_step.
// Forward is one phase. Backward to the data has a phase per residue of the stride: the taps that
// hit a dx coordinate depend on the residue only, so no product with an inserted zero is done.
//
// It is a matrix product per phase and group: rows are target pixels, columns are the produced
// channels, and k runs over (vertical tap, horizontal tap, reduced channel), channels innermost.
#pragma once
#include <binade/kernels/conv/conv2d_internal.h>
#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/strided.cuh>

#include <algorithm>
#include <numeric>

namespace binade::kernels {

inline constexpr int kMaxPhases = 16;

inline FastDivider divider(int64_t by) {
  return FastDivider(static_cast<uint32_t>(std::max<int64_t>(by, 1)));
}
// Returns the quotient n / by; `remainder` gets the rest. REQUIRES: n >= 0.
__device__ __forceinline__ int divide(const FastDivider& by, int n, int& remainder) {
  const auto quotient = static_cast<int>(by.quotient(static_cast<uint32_t>(n)));
  remainder = n - quotient * static_cast<int>(by.divisor());
  return quotient;
}

struct CorrelationPhase {
  int first = 0, count = 0;  // targets first, first + target_step, ...
  int taps = 0, source0 = 0, kernel0 = 0;
  FastDivider by_count, by_taps;
};

struct CorrelationAxis {
  int source_size = 0, target_step = 1, source_step = 1, tap_step = 1, kernel_step = 1, phases = 1;
  CorrelationPhase phase[kMaxPhases];
};

inline CorrelationAxis forward_axis(const Conv2dGeometry& g, int axis, int64_t source,
                                    int64_t target, int64_t kernel) {
  CorrelationAxis result;
  result.source_size = static_cast<int>(source);
  result.source_step = static_cast<int>(g.stride[axis]);
  result.tap_step = static_cast<int>(g.dilation[axis]);
  CorrelationPhase& all = result.phase[0];
  all.count = static_cast<int>(target);
  all.taps = static_cast<int>(kernel);
  all.source0 = static_cast<int>(-g.padding[axis]);
  all.by_count = divider(all.count);
  all.by_taps = divider(all.taps);
  return result;
}

// dx[h] is the sum of dy[(h + padding - i dilation) / stride] w[i] over all i for which the
// division is exact: every kernel_step-th i, from a first one that depends on the residue of h.
inline CorrelationAxis backward_axis(const Conv2dGeometry& g, int axis, int64_t source,
                                     int64_t target, int64_t kernel) {
  const int stride = static_cast<int>(g.stride[axis]), size = static_cast<int>(target);
  const int dilation = static_cast<int>(g.dilation[axis]), common = std::gcd(stride, dilation);
  CorrelationAxis result;
  result.source_size = static_cast<int>(source);
  result.target_step = stride;
  result.tap_step = -dilation / common;
  result.kernel_step = stride / common;
  result.phases = std::min(stride, size);
  for (int first = 0; first < result.phases; ++first) {
    CorrelationPhase& one = result.phase[first];
    one.first = first;
    one.count = (size - first + stride - 1) / stride;
    const int shifted = first + static_cast<int>(g.padding[axis]);
    while (one.kernel0 < result.kernel_step && (shifted - one.kernel0 * dilation) % stride != 0) {
      ++one.kernel0;
    }
    const int left = static_cast<int>(kernel) - one.kernel0;
    if (one.kernel0 < result.kernel_step && left > 0) {
      one.taps = (left - 1) / result.kernel_step + 1;
      one.source0 = (shifted - one.kernel0 * dilation) / stride;
    }
    one.by_count = divider(one.count);
    one.by_taps = divider(one.taps);
  }
  return result;
}

struct CorrelationShape {
  CorrelationAxis vertical, horizontal;
  int groups = 1, reduced = 0, produced = 0;  // channels per group
  int64_t images = 0;
  int64_t source_strides[3] = {}, target_strides[3] = {};  // image, row, column; channels: 1
  int64_t weight_o = 0, weight_r = 0, weight_s = 0;        // strides of w; input channels: 1
  FastDivider by_reduced;
  bool vector_source = false, vector_weights = false, vector_target = false;  // 16-byte chunks

  BINADE_HD int64_t rows(const CorrelationPhase& v, const CorrelationPhase& h) const {
    return images * v.count * h.count;
  }
  BINADE_HD unsigned row_tiles(int tile_rows) const {  // of the largest phases, which come first
    const int64_t most = rows(vertical.phase[0], horizontal.phase[0]);
    return static_cast<unsigned>((most + tile_rows - 1) / tile_rows);
  }
  BINADE_HD unsigned column_tiles(int tile_columns) const {
    return static_cast<unsigned>((produced + tile_columns - 1) / tile_columns);
  }
  int64_t blocks(int tile_rows, int tile_columns) const {
    return static_cast<int64_t>(row_tiles(tile_rows)) * column_tiles(tile_columns) * groups *
           vertical.phases * horizontal.phases;
  }
};

// The part of the problem that a block computes: phases, a group, and the first row and column of
// its tile. Blocks that read the same pixels are neighbours, so that the pixels are read from
// memory once.
class CorrelationTile {
 public:
  __device__ __forceinline__ CorrelationTile(const CorrelationShape& p, int tile_rows,
                                             int tile_columns) {
    const unsigned column_tiles = p.column_tiles(tile_columns);
    const unsigned row_tiles = p.row_tiles(tile_rows);
    unsigned rest = blockIdx.x;
    column = static_cast<int64_t>(rest % column_tiles) * tile_columns;
    rest /= column_tiles;
    row = static_cast<int64_t>(rest % row_tiles) * tile_rows;
    rest /= row_tiles;
    group = static_cast<int>(rest % static_cast<unsigned>(p.groups));
    rest /= static_cast<unsigned>(p.groups);
    h = &p.horizontal.phase[rest % static_cast<unsigned>(p.horizontal.phases)];
    v = &p.vertical.phase[rest / static_cast<unsigned>(p.horizontal.phases)];
    rows = p.rows(*v, *h);
    k_end = v->taps * h->taps * p.reduced;
    const int64_t image_rows = static_cast<int64_t>(v->count) * h->count;
    first_image_ = row / image_rows;
    first_row_ = first_image_ * image_rows;
  }

  // Returns the image of row `at`, which is the tile's first row or after it, and the numbers i and
  // j of its pixel in the phases.
  __device__ __forceinline__ int64_t pixel(int64_t at, int& i, int& j) const {
    const int line = divide(h->by_count, static_cast<int>(at - first_row_), j);
    return first_image_ + divide(v->by_count, line, i);
  }

  const CorrelationPhase *v, *h;
  int group, k_end;
  int64_t row, column, rows;  // rows: of the whole phase

 private:
  int64_t first_image_, first_row_;  // where the tile begins: divisions stay in 32 bits
};

}  // namespace binade::kernels
