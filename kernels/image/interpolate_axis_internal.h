// One axis of a resampling, on the host and on the device: position i of the result is at (slope i
// + offset) / divisor of the source, an exact fraction. In f32 the weight of a neighbour is exact
// up to its last rounding; in f64 the position is rounded as PyTorch does, because PyTorch's f64
// results are the reference.
#pragma once
#include <binade/kernels/image/interpolate.h>
#include <binade/kernels/cuda/strided.cuh>

namespace binade::kernels {

// The two neighbours of a position and the weight of the second one.
template <class C>
struct Neighbours {
  int64_t low, high;
  C weight;
};

struct InterpolationAxis {
  int64_t source, result;  // sizes
  int64_t slope, offset, divisor;
  FastDivider by_divisor;
  bool wide;     // 64-bit divisions
  bool blend;    // bilinear
  bool corners;  // align_corners

  InterpolationAxis(int64_t source_size, int64_t result_size, Interpolation mode,
                    bool align_corners)
      : source(source_size),
        result(result_size),
        blend(mode == Interpolation::bilinear),
        corners(align_corners) {
    if (!blend) {
      slope = source, offset = 0, divisor = result;
    } else if (align_corners) {
      slope = result > 1 ? source - 1 : 0, offset = 0, divisor = result > 1 ? result - 1 : 1;
    } else {
      slope = 2 * source, offset = source - result, divisor = 2 * result;
    }
    constexpr int64_t kNarrow = int64_t{1} << 31;
    wide = source >= kNarrow / 2 || result >= kNarrow / 2 ||
           slope * (result - 1) + (offset > 0 ? offset : 0) >= kNarrow;
    if (!wide) {
      by_divisor = FastDivider(static_cast<uint32_t>(divisor));
    }
  }

  template <class C>
  BINADE_HD Neighbours<C> at(int64_t i) const {
    const int64_t place = slope * i + offset, numerator = place > 0 ? place : 0;
    const int64_t low =
        wide ? numerator / divisor : int64_t{by_divisor.quotient(static_cast<uint32_t>(numerator))};
    const int64_t high = low + 1 < source ? low + 1 : low;
    C weight = 0;
    if (blend && sizeof(C) == 8) {
      const C rounded = rounded_place<C>(i);
      weight = rounded > C(low) ? rounded - C(low) : C(0);
    } else if (blend) {
      weight = C(numerator - low * divisor) / C(divisor);
    }
    return {low, blend ? high : low, weight};
  }

  template <class C>
  BINADE_HD C rounded_place(int64_t i) const {
    const C scale = C(slope) / C(divisor);
    return corners ? scale * C(i) : scale * (C(i) + C(0.5)) - C(0.5);
  }

  // The range [first, end) of results that may use source position h.
  BINADE_HD int64_t first(int64_t h) const {
    const int64_t least = (blend ? h - 1 : h) * divisor - offset;
    return slope == 0 || least <= 0 ? 0 : (least + slope - 1) / slope;
  }
  BINADE_HD int64_t end(int64_t h) const {
    const int64_t beyond = (h + 1) * divisor - offset;
    const int64_t last = slope == 0 || h + 1 >= source ? result : (beyond + slope - 1) / slope;
    return last < 0 ? 0 : last < result ? last : result;
  }
  // The weight of source position h in result i.
  template <class C>
  BINADE_HD C part(int64_t i, int64_t h) const {
    const Neighbours<C> n = at<C>(i);
    return (n.low == h ? C(1) - n.weight : C(0)) + (n.high == h ? n.weight : C(0));
  }
};

}  // namespace binade::kernels
