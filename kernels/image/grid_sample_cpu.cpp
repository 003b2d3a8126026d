// grid_sample on the CPU. The places of some positions are computed once for all channels. The
// gradient of the image is added up by plane, each by one thread, in the order of the positions; if
// channels are adjacent, several are added at once.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/image/grid_sample_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels::cpu {
namespace {

constexpr int64_t kPositions = 256;  // of a part
constexpr int64_t kChannels = 16;    // that are added up at once

template <class T>
const T* image_of(const View& x, int64_t n) {
  return x.as<const T>() + n * x.strides[0];
}

// Position i of image n.
template <class T>
class Positions {
 public:
  using C = Compute<T>;
  Positions(const View& grid, const View& x, const GridRule& rule)
      : grid_(grid), vertical_{x.size(2), rule}, horizontal_{x.size(3), rule} {}
  int64_t count() const { return grid_.size(1) * grid_.size(2); }
  GridPosition<C> at(int64_t n, int64_t i) const {
    const int64_t p = i / grid_.size(2), q = i % grid_.size(2);
    const T* place = image_of<T>(grid_, n) + p * grid_.strides[1] + q * grid_.strides[2];
    return {vertical_.at(static_cast<C>(place[grid_.strides[3]])),
            horizontal_.at(static_cast<C>(*place))};
  }
  std::vector<GridPosition<C>> range(int64_t n, int64_t begin, int64_t end) const {
    std::vector<GridPosition<C>> all;
    all.reserve(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i) {
      all.push_back(at(n, i));
    }
    return all;
  }

 private:
  const View& grid_;
  GridAxis vertical_, horizontal_;
};

// Calls f(image, first position, end) for parts of all positions, on several threads.
template <class F>
void for_parts(int64_t images, int64_t positions, int64_t channels, const F& f) {
  const int64_t parts = (positions + kPositions - 1) / kPositions;
  const int64_t work = 8 * std::min(positions, kPositions) * (channels + 1) + 1;
  parallel_for(images * parts, kSerialElements / work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part % parts * kPositions;
      f(part / parts, first, std::min(first + kPositions, positions));
    }
  });
}

// The offset of position i in images of y.
int64_t offset_of(const View& y, int64_t i) {
  return i / y.size(3) * y.strides[2] + i % y.size(3) * y.strides[3];
}

template <class T>
void forward(const GridSampleForward& a) {
  using C = Compute<T>;
  const Positions<T> positions(a.grid, a.x, a.rule);
  const int64_t channels = a.y.size(1);
  const auto one = [&](const GridPosition<C>& position, int64_t n, int64_t c, int64_t i) {
    const T* x = image_of<T>(a.x, n) + c * a.x.strides[1];
    T* y = a.y.as<T>() + n * a.y.strides[0] + c * a.y.strides[1];
    y[offset_of(a.y, i)] = static_cast<T>(position.value([&](int64_t row, int64_t column) {
      return static_cast<C>(x[row * a.x.strides[2] + column * a.x.strides[3]]);
    }));
  };
  for_parts(a.y.size(0), positions.count(), channels, [&](int64_t n, int64_t begin, int64_t end) {
    const std::vector<GridPosition<C>> all = positions.range(n, begin, end);
    if (a.y.strides[1] == 1) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = 0; c < channels; ++c) {
          one(all[static_cast<size_t>(i - begin)], n, c, i);
        }
      }
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = begin; i < end; ++i) {
          one(all[static_cast<size_t>(i - begin)], n, c, i);
        }
      }
    }
  });
}

template <class T>
void grid_gradient(const GridSampleBackward& a, const Positions<T>& positions) {
  using C = Compute<T>;
  const int64_t channels = a.dy.size(1);
  for_parts(a.dy.size(0), positions.count(), channels, [&](int64_t n, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const GridPosition<C> position = positions.at(n, i);
      C vertical = 0, horizontal = 0;
      const T* dy = image_of<T>(a.dy, n) + offset_of(a.dy, i);
      const bool moves = position.row.slope != C(0) || position.column.slope != C(0);
      for (int64_t c = 0; moves && c < channels; ++c) {
        const T* x = image_of<T>(a.x, n) + c * a.x.strides[1];
        position.add_slopes(
            [&](int64_t row, int64_t column) {
              return static_cast<C>(x[row * a.x.strides[2] + column * a.x.strides[3]]);
            },
            static_cast<C>(dy[c * a.dy.strides[1]]), vertical, horizontal);
      }
      const int64_t p = i / a.dgrid.size(2), q = i % a.dgrid.size(2);
      T* out = a.dgrid.as<T>() + n * a.dgrid.strides[0] + p * a.dgrid.strides[1] +
               q * a.dgrid.strides[2];
      *out = static_cast<T>(scaled_slope(horizontal, position.column.slope));
      out[a.dgrid.strides[3]] = static_cast<T>(scaled_slope(vertical, position.row.slope));
    }
  });
}

// Adds up the gradient of channels [first, last) of image n in sums [height, width, channels].
template <class T>
void add_image(const GridSampleBackward& a, const Positions<T>& positions, int64_t n, int64_t first,
               int64_t last, std::vector<Compute<T>>& sums) {
  using C = Compute<T>;
  const int64_t width = a.x.size(3), count = last - first;
  sums.assign(static_cast<size_t>(a.x.size(2) * width * count), C(0));
  for (int64_t i = 0; i < positions.count(); ++i) {
    const GridPosition<C> position = positions.at(n, i);
    const T* dy = image_of<T>(a.dy, n) + offset_of(a.dy, i) + first * a.dy.strides[1];
    for (int k = 0; k < 4; ++k) {
      const C weight = position.part(k);
      if (weight != C(0)) {
        C* sum = sums.data() + (position.row_of(k) * width + position.column_of(k)) * count;
        for (int64_t c = 0; c < count; ++c) {
          sum[c] += weight * static_cast<C>(dy[c * a.dy.strides[1]]);
        }
      }
    }
  }
  for (int64_t pixel = 0; pixel < a.x.size(2) * width; ++pixel) {
    T* dx = a.dx.as<T>() + n * a.dx.strides[0] + first * a.dx.strides[1] +
            pixel / width * a.dx.strides[2] + pixel % width * a.dx.strides[3];
    for (int64_t c = 0; c < count; ++c) {
      dx[c * a.dx.strides[1]] = static_cast<T>(sums[static_cast<size_t>(pixel * count + c)]);
    }
  }
}

template <class T>
void image_gradient(const GridSampleBackward& a, const Positions<T>& positions) {
  const int64_t channels = a.dx.size(1), groups = (channels + kChannels - 1) / kChannels;
  parallel_for(a.dx.size(0) * groups, 1, [&](int64_t begin, int64_t end) {
    std::vector<Compute<T>> sums;
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group % groups * kChannels;
      add_image(a, positions, group / groups, first, std::min(first + kChannels, channels), sums);
    }
  });
}

}  // namespace

void grid_sample_forward(const GridSampleForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating("grid_sample", a.y.dtype, [&]<class T>(Type<T>) { forward<T>(a); });
}

void grid_sample_backward(const GridSampleBackward& a) {
  check_arguments(a);
  dispatch_floating("grid_sample", a.dy.dtype, [&]<class T>(Type<T>) {
    const Positions<T> positions(a.grid, a.x, a.rule);
    if (a.dx && a.dx.numel > 0) {
      image_gradient(a, positions);
    }
    if (a.dgrid && a.dgrid.numel > 0) {
      grid_gradient(a, positions);
    }
  });
}

}  // namespace binade::kernels::cpu
