// Positions in an image, for both backends.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/image/blend_internal.h>
#include <binade/kernels/image/grid_sample.h>

#include <cmath>

namespace binade::kernels {

// A position along one axis lies between the elements low and low + 1, `weight` of the way.
template <class C>
struct GridPlace {
  int64_t low = 0;
  C weight = 0;
  C slope = 0;                           // d position / d coordinate of the grid
  bool low_in = false, high_in = false;  // which of the two are in the image
};

struct GridAxis {
  int64_t size;
  GridRule rule;

  template <class C>
  BINADE_HD GridPlace<C> at(C coordinate) const {
    GridPlace<C> place;
    const C n = static_cast<C>(size),
            g = coordinate != coordinate ? C(-1)  // NOLINT(misc-redundant-expression): NaN
                                         : coordinate;
    C position =
        rule.align_corners ? (g + C(1)) / C(2) * (n - C(1)) : ((g + C(1)) * n - C(1)) / C(2);
    place.slope = (rule.align_corners ? n - C(1) : n) / C(2);
    if (rule.padding == GridPadding::reflection) {
      reflect(position, place.slope);
    }
    if (rule.padding != GridPadding::zeros) {
      if (!(position > C(0))) {  // also NaN
        position = place.slope = C(0);
      } else if (position >= n - C(1)) {
        position = n - C(1);
        place.slope = C(0);
      }
    }
    if (rule.mode == Interpolation::nearest) {
      position = std::nearbyint(position);
      place.slope = C(0);
    }
    if (position > C(-1) && position < n) {
      const C below = std::floor(position);
      place.low = static_cast<int64_t>(below);
      place.weight = position - below;
      place.low_in = place.low >= 0;
      place.high_in = rule.mode == Interpolation::bilinear && place.low + 1 < size;
    }
    return place;
  }

 private:
  // At the edges, or with align_corners at the centres of the outermost pixels.
  template <class C>
  BINADE_HD void reflect(C& position, C& slope) const {
    const C first = rule.align_corners ? C(0) : C(-0.5),
            span = static_cast<C>(rule.align_corners ? size - 1 : size);
    if (span == C(0)) {
      position = slope = C(0);
      return;
    }
    C distance = position - first;
    if (distance < C(0)) {
      distance = -distance;
      slope = -slope;
    }
    // Exact for any distance; the image and its mirror image alternate.
    const C rest = std::fmod(distance, 2 * span);
    const bool backwards = rest >= span;
    position = first + (backwards ? 2 * span - rest : rest);
    slope = backwards ? -slope : slope;
  }
};

// A sum of slopes times that of the place; where the position does not move, 0, also for
// infinities.
template <class C>
BINADE_HD C scaled_slope(C sum, C slope) {
  return slope == C(0) ? C(0) : sum * slope;
}

// The four elements around a position; load(row, column) reads one.
template <class C>
struct GridPosition {
  GridPlace<C> row, column;

  template <class F>
  BINADE_HD C value(const F& load) const {
    const C top = row.low_in ? blended(row.low, load) : C(0);
    const C bottom = row.high_in && row.weight != C(0) ? blended(row.low + 1, load) : C(0);
    return blend(top, bottom, row.weight);
  }
  // Adds dy times the slope along each axis, without those of the places.
  template <class F>
  BINADE_HD void add_slopes(const F& load, C dy, C& vertical, C& horizontal) const {
    const C a = row.low_in && column.low_in ? load(row.low, column.low) : C(0);
    const C b = row.low_in && column.high_in ? load(row.low, column.low + 1) : C(0);
    const C c = row.high_in && column.low_in ? load(row.low + 1, column.low) : C(0);
    const C d = row.high_in && column.high_in ? load(row.low + 1, column.low + 1) : C(0);
    vertical += dy * blend(c - a, d - b, column.weight);
    horizontal += dy * blend(b - a, d - c, row.weight);
  }
  // Corner k of 4: the part of dy that it gets, 0 if it is not in the image.
  BINADE_HD C part(int k) const {
    const bool inside =
        (k < 2 ? row.low_in : row.high_in) && (k % 2 == 0 ? column.low_in : column.high_in);
    const C vertical = k < 2 ? C(1) - row.weight : row.weight,
            horizontal = k % 2 == 0 ? C(1) - column.weight : column.weight;
    return inside ? vertical * horizontal : C(0);
  }
  BINADE_HD int64_t row_of(int k) const { return row.low + k / 2; }
  BINADE_HD int64_t column_of(int k) const { return column.low + k % 2; }

 private:
  template <class F>
  BINADE_HD C blended(int64_t at, const F& load) const {
    const C left = column.low_in ? load(at, column.low) : C(0);
    const C right = column.high_in && column.weight != C(0) ? load(at, column.low + 1) : C(0);
    return blend(left, right, column.weight);
  }
};

}  // namespace binade::kernels
