// A grid of register tiles (TileGrid). Only sources that are compiled per instruction set may
// include it (rules: kernels/base/isa.h).
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kNearBytes = 64 * 1024;
constexpr int64_t kNearTiles = 8;

template <class T>
constexpr T smaller(T a, T b) {
  return a < b ? a : b;
}

// The last panel is one vector wide if that is enough.
template <class T>
int64_t panel_width(const TileSet<T>& tiles, int64_t columns) {
  return columns > tiles.lanes ? tiles.width() : tiles.lanes;
}

// If all of b fits into a near cache, a few tiles of rows are multiplied by all panels before the
// next tiles, so that rows and results stay in cache too. Else one panel after the other is
// multiplied by all rows.
template <class T>
class Grid {
  using Sum = typename Tile<T>::Sum;

 public:
  Grid(const TileGrid& given, const TileSet<T>& tiles)
      : g_(given), tiles_(tiles), c_size_(given.epilogue.stored(sizeof(Sum))) {
    for (int i = 1; i >= 0; --i) {  // matrices stored without a gap become one
      if (g_.a_outer[i] == g_.rows * g_.sum.a_row && g_.c_outer[i] == g_.rows * g_.c_row) {
        g_.rows *= g_.outer[i];
        g_.outer[i] = 1;
      }
    }
    count_ = (g_.rows + tiles.max_rows - 1) / tiles.max_rows;
    low_ = count_ ? g_.rows / count_ : 0;
    higher_ = g_.rows - low_ * count_;
    rows_contiguous_ = g_.sum.a_step != 1 || g_.sum.a_row == 1;
    g_.epilogue.operand_row = g_.c_row;
    t_.sum = g_.sum;
    t_.c_row = g_.c_row;
  }

  void run() {
    const int64_t b_elements = g_.sum.segments * g_.sum.length * g_.columns;
    if (b_elements * static_cast<int64_t>(sizeof(T)) <= kNearBytes) {
      each_matrix([&](const T* a, char* c) {
        for (int64_t i = 0; i < count_; i += kNearTiles) {
          each_panel([&](int64_t column) {
            rows(a, c + column * c_size_, i, smaller(i + kNearTiles, count_));
          });
        }
      });
    } else {
      each_panel([&](int64_t column) {
        each_matrix([&](const T* a, char* c) { rows(a, c + column * c_size_, 0, count_); });
      });
    }
  }

 private:
  template <class F>
  void each_matrix(const F& f) {
    for (int64_t o = 0; o < g_.outer[0]; ++o) {
      for (int64_t p = 0; p < g_.outer[1]; ++p) {
        f(static_cast<const T*>(g_.a) + o * g_.a_outer[0] + p * g_.a_outer[1],
          static_cast<char*>(g_.c) + (o * g_.c_outer[0] + p * g_.c_outer[1]) * c_size_);
      }
    }
  }

  // Calls f(first column) with t_ set to the panel.
  template <class F>
  void each_panel(const F& f) {
    for (int64_t j = 0; j < g_.columns; j += tiles_.width()) {
      t_.columns = smaller(g_.columns - j, tiles_.width());
      t_.b = static_cast<const T*>(g_.b) + (g_.b_step ? j : j * g_.sum.segments * g_.sum.length);
      t_.b_step = g_.b_step ? g_.b_step : panel_width(tiles_, t_.columns);
      t_.epilogue = g_.epilogue.at(0, j, sizeof(Sum));
      f(j);
    }
  }

  // Tiles [begin, end) of the rows of a matrix; the first tiles have one row more than the others.
  void rows(const T* a, char* c, int64_t begin, int64_t end) {
    int64_t first = begin * low_ + smaller(begin, higher_);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t high = low_ + (i < higher_);
      t_.a = a + first * g_.sum.a_row;
      t_.next_rows = high;
      t_.c = c + first * g_.c_row * c_size_;
      if (g_.epilogue.operand) {
        const int64_t at = (static_cast<char*>(t_.c) - static_cast<char*>(g_.c)) / c_size_;
        t_.epilogue.operand = g_.epilogue.operand + at * int64_t{sizeof(Sum)};
      }
      tiles_.get(high, t_.columns, rows_contiguous_)(t_);
      first += high;
    }
  }

  TileGrid g_;
  const TileSet<T>& tiles_;
  const int64_t c_size_;
  Tile<T> t_;
  int64_t count_, low_, higher_;
  bool rows_contiguous_;
};

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
