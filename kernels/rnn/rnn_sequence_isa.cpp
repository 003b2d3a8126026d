// Register tiles of rows times all gates of some hidden units, and the cell on their sums.
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/contraction_vector_internal.h>
#include <binade/kernels/rnn/rnn_cell_block_internal.h>
#include <binade/kernels/rnn/rnn_sequence_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

#define BINADE_UNROLL _Pragma("GCC unroll 14")

// The vectors of a panel, and the most rows of a tile: sums, a step of weights and a factor fit
// into the registers.
constexpr int unit_vectors(bool forward, RNNCell cell) {
  return forward && !is_plain(cell) ? 1 : 2;
}
#if defined(__AVX512F__)
constexpr int kMaxRows[5] = {0, 14, 12, 8, 6};
#else
constexpr int kMaxRows[5] = {0, 6, 6, 3, 2};
#endif

// n of the lanes from p on, 0 in the others.
template <class T>
BINADE_INLINE Vector<Compute<T>> load_lanes(const T* p, int64_t n) {
  constexpr int64_t kCount = kLanes<Compute<T>>;
  return n >= kCount ? load(p) : n > 0 ? load(p, static_cast<int>(n)) : Vector<Compute<T>>{};
}
template <class T>
BINADE_INLINE void store_lanes(T* p, Vector<Compute<T>> v, int64_t n) {
  constexpr int64_t kCount = kLanes<Compute<T>>;
  if (n >= kCount) {
    store(p, v);
  } else if (n > 0) {
    store(p, v, static_cast<int>(n));
  }
}

// sums[row][vector] += the sum over k of a[row][k] weight[k][vector], in the blocks of k of gemm.
template <class C>
struct TileProduct {
  const C* a;
  int64_t a_row, k;
  const C* weight;
  int64_t columns, vector_step;  // of a step of weights; from vector to vector
  C* sums;
};

// Weights are prefetched so many steps of k ahead: they come from the second-level cache.
constexpr int64_t kStepsAhead = 12;

template <class C, int kRows, int kVectors>
[[gnu::noinline]] void add_products(const TileProduct<C>& p) {
  constexpr int kCount = kLanes<C>;
  const int64_t parts = (p.k + kPackDepth - 1) / kPackDepth;
  const int64_t depth = (((p.k + parts - 1) / parts) + 7) / 8 * 8;
  const int64_t columns = p.columns, vector_step = p.vector_step, a_row = p.a_row;
  for (int64_t begin = 0; begin < p.k; begin += depth) {
    const int64_t end = p.k - begin < depth ? p.k : begin + depth;
    Vector<C> sums[kRows][kVectors];
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      BINADE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = Vector<C>{};
      }
    }
    const C *a = p.a + begin, *b = p.weight + begin * columns;
    for (int64_t k = begin; k < end; ++k, ++a, b += columns) {
      Vector<C> row[kVectors];
      BINADE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        row[v] = load(b + v * vector_step);
        __builtin_prefetch(b + kStepsAhead * columns + v * vector_step);
      }
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const C factor = a[i * a_row];
        BINADE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          sums[i][v] += factor * row[v];
        }
      }
    }
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      BINADE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        C* to = p.sums + (i * kVectors + v) * kCount;
        store(to, sums[i][v] + load(to));
      }
    }
  }
}

template <class C, int kVectors, int kRows = kMaxRows[kVectors]>
BINADE_INLINE void add_tile(int64_t rows, const TileProduct<C>& p) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return add_tile<C, kVectors, kRows - 1>(rows, p);
    }
  }
  add_products<C, kRows, kVectors>(p);
}

// Calls f(first, rows) for tiles of nearly equal height.
template <class F>
BINADE_INLINE void for_tiles(int64_t first, int64_t rows, int64_t most, const F& f) {
  const int64_t count = (rows + most - 1) / most;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = rows * i / count;
    f(first + begin, rows * (i + 1) / count - begin);
  }
}

// A vector of hidden units of a row: its place in blocks, in sums and in the arrays of a step.
struct Place {
  int64_t block, sums, at, wide, row, unit, lanes;
};

// The code on a panel that both directions share. kGates: gates in the sums.
template <class C, int kGates, int kUnitVectors>
class Tiles {
 public:
  static constexpr int64_t kCount = kLanes<C>;
  static constexpr int kVectors = kGates * kUnitVectors;
  static constexpr int64_t kRowsOfBlock = kCellPart / (kUnitVectors * kCount);

  Tiles(const RNNStepPanel& panel, const RNNCellRows& cell)
      : panel_(panel), cell_(cell), gates_(gate_count(cell.cell)) {}

  // Calls init(place), adds the products, then calls finish(first row, rows) for parts of the tile.
  template <class Init, class Finish>
  void run(const Init& init, const Finish& finish) {
    for_tiles(cell_.first, cell_.rows, kMaxRows[kVectors], [&](int64_t first, int64_t rows) {
      first_ = first;
      each(first, rows, init);
      if (panel_.a) {
        add_tile<C, kVectors>(
            rows,
            {.a = static_cast<const C*>(panel_.a) + first * panel_.a_row,
             .a_row = panel_.a_row,
             .k = panel_.k,
             .weight = static_cast<const C*>(panel_.weight),
             .columns = kGates * panel_.units,
             .vector_step = kUnitVectors == 1 && panel_.units < kCount ? panel_.units : kCount,
             .sums = sums_});
      }
      for (int64_t r = 0; r < rows; r += kRowsOfBlock) {
        finish(first + r, rows - r < kRowsOfBlock ? rows - r : kRowsOfBlock);
      }
    });
  }

  // Calls f(place) for all vectors of some rows.
  template <class F>
  BINADE_INLINE void each(int64_t first, int64_t rows, const F& f) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int v = 0; v < kUnitVectors; ++v) {
        const int64_t unit = panel_.unit + v * kCount, row = first + r;
        f(Place{.block = (r * kUnitVectors + v) * kCount,
                .sums = ((row - first_) * kVectors + v) * kCount,
                .at = row * cell_.hidden + unit,
                .wide = row * gates_ * cell_.hidden + unit,
                .row = row,
                .unit = unit,
                .lanes = panel_.units - v * kCount});
      }
    }
  }
  C* sums(const Place& p, int gate) { return sums_ + p.sums + gate * kUnitVectors * kCount; }

 private:
  const RNNStepPanel& panel_;
  const RNNCellRows& cell_;
  const int64_t gates_;
  int64_t first_ = 0;
  alignas(64) C sums_[kMaxRows[kVectors] * kVectors * kCount];
};

template <RNNCell kCell, class T>
void forward(const RNNStep& s) {
  using C = Compute<T>;
  constexpr int kGates = gate_count(kCell);
  constexpr bool kGru = kCell == RNNCell::gru;
  const RNNCellRows& a = s.cell;
  T *gates = static_cast<T*>(a.gates), *products = static_cast<T*>(const_cast<void*>(a.products)),
    *h = static_cast<T*>(a.h);
  const C* bias = static_cast<const C*>(s.bias);
  Tiles<C, kGates, unit_vectors(true, kCell)> tiles(s.panel, a);
  CellBlock<C> block;
  const auto init = [&](const Place& p) {
    for (int g = 0; g < kGates; ++g) {
      store(tiles.sums(p, g),
            kGru ? Vector<C>{} : load_lanes(gates + p.wide + g * a.hidden, p.lanes));
    }
  };
  const auto read = [&](const Place& p) {
    for (int g = 0; g < kGates; ++g) {
      const int64_t column = g * a.hidden;
      Vector<C> x = load(tiles.sums(p, g));
      if (bias) {
        x += load_lanes(bias + column + p.unit, p.lanes);
      }
      if constexpr (kGru) {
        store(block.product[g] + p.block, x);
        store_lanes(products + p.wide + column, x, p.lanes);
        x = load_lanes(gates + p.wide + column, p.lanes);
      }
      store(block.gate[g] + p.block, x);
    }
    store(block.c + p.block, Vector<C>{});
    store(block.h + p.block, Vector<C>{});
    if constexpr (kGru) {
      store(block.h_before + p.block,
            load_lanes(static_cast<const T*>(a.h_before) + p.at, p.lanes));
    } else if constexpr (kCell == RNNCell::lstm) {
      store(block.c_before + p.block,
            load_lanes(static_cast<const C*>(a.c_before) + p.at, p.lanes));
    }
  };
  const auto write = [&](const Place& p) {
    for (int g = 0; g < kGates && !is_plain(kCell); ++g) {
      store_lanes(gates + p.wide + g * a.hidden, load(block.gate[g] + p.block), p.lanes);
    }
    store_lanes(h + p.at, load(block.h + p.block), p.lanes);
    if constexpr (kCell == RNNCell::lstm) {
      store_lanes(static_cast<C*>(a.c) + p.at, load(block.c + p.block), p.lanes);
    }
  };
  tiles.run(init, [&](int64_t first, int64_t rows) {
    tiles.each(first, rows, read);
    forward_block<kCell>(block, rows * unit_vectors(true, kCell) * kLanes<C>);
    tiles.each(first, rows, write);
  });
}

// The gradient of h from outside for a vector of hidden units.
template <class T>
BINADE_INLINE Vector<Compute<T>> outer_gradient(const RNNCellGradientRows& a, const Place& p) {
  using C = Compute<T>;
  if (!a.dh_out) {
    return Vector<C>{};
  }
  const T* from = static_cast<const T*>(a.dh_out) + p.row * a.dh_row + p.unit * a.dh_column;
  if (a.dh_column == 1) {
    return load_lanes(from, p.lanes);
  }
  alignas(64) C each[kLanes<C>] = {};
  for (int64_t i = 0; i < kLanes<C> && i < p.lanes; ++i) {
    each[i] = static_cast<C>(from[i * a.dh_column]);
  }
  return load(each);
}

// Reads the values of the forward of a vector of hidden units.
template <RNNCell kCell, class T, class C>
BINADE_INLINE void read_values(const RNNCellRows& in, const Place& p, CellBlock<C>& block) {
  for (int g = 0; g < gate_count(kCell); ++g) {
    const int64_t from = p.wide + g * in.hidden;
    store(block.gate[g] + p.block, load_lanes(static_cast<const T*>(in.gates) + from, p.lanes));
    if constexpr (kCell == RNNCell::gru) {
      store(block.product[g] + p.block,
            load_lanes(static_cast<const T*>(in.products) + from, p.lanes));
    }
  }
  if constexpr (kCell == RNNCell::gru) {
    store(block.h_before + p.block, load_lanes(static_cast<const T*>(in.h_before) + p.at, p.lanes));
  } else if constexpr (kCell == RNNCell::lstm) {
    store(block.c_before + p.block, load_lanes(static_cast<const C*>(in.c_before) + p.at, p.lanes));
    store(block.c + p.block, load_lanes(static_cast<const C*>(in.c) + p.at, p.lanes));
  } else {
    store(block.h + p.block, load_lanes(static_cast<const T*>(in.h) + p.at, p.lanes));
  }
}

template <RNNCell kCell, class T>
void backward(const RNNStepGradient& s) {
  using C = Compute<T>;
  constexpr int kGates = gate_count(kCell), kUnits = unit_vectors(false, kCell);
  constexpr bool kGru = kCell == RNNCell::gru, kLstm = kCell == RNNCell::lstm;
  const RNNCellGradientRows& a = s.cell;
  const RNNCellRows& in = a.values;
  const C* dh_next = static_cast<const C*>(a.dh_next);
  Tiles<C, 1, kUnits> tiles(s.panel, in);
  CellBlock<C> block;
  CellBlockGradients<C> d;
  const auto init = [&](const Place& p) {
    store(tiles.sums(p, 0), dh_next ? load_lanes(dh_next + p.at, p.lanes) : Vector<C>{});
  };
  const auto read = [&](const Place& p) {
    read_values<kCell, T>(in, p, block);
    store(d.dh + p.block, outer_gradient<T>(a, p) + load(tiles.sums(p, 0)));
    store(d.dc + p.block,
          kLstm ? load_lanes(static_cast<const C*>(a.dc) + p.at, p.lanes) : Vector<C>{});
  };
  const auto write = [&](const Place& p) {
    for (int g = 0; g < kGates; ++g) {
      const int64_t to = p.wide + g * in.hidden;
      store_lanes(static_cast<T*>(a.dgates) + to, load(d.gate[g] + p.block), p.lanes);
      if constexpr (kGru) {
        store_lanes(static_cast<T*>(a.dproducts) + to, load(d.product[g] + p.block), p.lanes);
      }
      store_lanes(static_cast<C*>(s.next_a) + p.row * s.panel.a_row + g * in.hidden + p.unit,
                  load((kGru ? d.product[g] : d.gate[g]) + p.block), p.lanes);
    }
    if constexpr (kLstm) {
      store_lanes(static_cast<C*>(a.dc) + p.at, load(d.dc + p.block), p.lanes);
    } else if constexpr (kGru) {
      store_lanes(static_cast<C*>(a.dh_before) + p.at, load(d.dh_before + p.block), p.lanes);
    }
  };
  tiles.run(init, [&](int64_t first, int64_t rows) {
    tiles.each(first, rows, read);
    backward_block<kCell>(block, d, rows * kUnits * kLanes<C>);
    tiles.each(first, rows, write);
  });
}

}  // namespace

void rnn_panel_units(bool forward, RNNCell cell, RNNPanelUnits& units) {
  units = {.f32 = unit_vectors(forward, cell) * kLanes<float>,
           .f64 = unit_vectors(forward, cell) * kLanes<double>};
}

void rnn_step(const RNNStep& s) {
  dispatch_floating("rnn_sequence", s.cell.dtype, [&]<class T>(Type<T>) {
    switch (s.cell.cell) {
      case RNNCell::tanh: return forward<RNNCell::tanh, T>(s);
      case RNNCell::relu: return forward<RNNCell::relu, T>(s);
      case RNNCell::lstm: return forward<RNNCell::lstm, T>(s);
      default: return forward<RNNCell::gru, T>(s);
    }
  });
}

void rnn_step_gradient(const RNNStepGradient& s) {
  dispatch_floating("rnn_sequence", s.cell.values.dtype, [&]<class T>(Type<T>) {
    switch (s.cell.values.cell) {
      case RNNCell::tanh: return backward<RNNCell::tanh, T>(s);
      case RNNCell::relu: return backward<RNNCell::relu, T>(s);
      case RNNCell::lstm: return backward<RNNCell::lstm, T>(s);
      default: return backward<RNNCell::gru, T>(s);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
