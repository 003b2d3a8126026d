#include <binade/kernels/rnn/rnn_cell_block_internal.h>
#include <binade/kernels/rnn/rnn_cell_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T, class C>
void read(const void* array, int64_t at, C* part, int64_t n) {
  if (array) {
    to_compute(static_cast<const T*>(array) + at, part, n);
  }
}
template <class T, class C>
void write(void* array, int64_t at, const C* part, int64_t n) {
  if (array) {
    from_compute(part, static_cast<T*>(array) + at, n);
  }
}

template <class T, class C>
void read_values(const RNNCellRows& a, int64_t row, int64_t j, int64_t n, CellBlock<C>& v) {
  const int gates = gate_count(a.cell);
  const int64_t wide = row * gates * a.hidden + j, at = row * a.hidden + j;
  for (int k = 0; k < gates; ++k) {
    read<T>(a.gates, wide + k * a.hidden, v.gate[k], n);
    if (k < 3) {
      read<T>(a.products, wide + k * a.hidden, v.product[k], n);
    }
  }
  read<T>(a.h_before, at, v.h_before, n);
  read<C>(a.c_before, at, v.c_before, n);
}

template <RNNCell kCell, class T>
void forward(const RNNCellRows& a) {
  using C = Compute<T>;
  constexpr int kGates = gate_count(kCell);
  CellBlock<C> v{};
  for (int64_t row = a.first; row < a.first + a.rows; ++row) {
    for (int64_t j = 0; j < a.hidden; j += kCellPart) {
      const int64_t n = a.hidden - j < kCellPart ? a.hidden - j : kCellPart;
      read_values<T>(a, row, j, n, v);
      forward_block<kCell>(v, n);
      for (int k = 0; k < kGates && !is_plain(kCell); ++k) {
        write<T>(a.gates, (row * kGates + k) * a.hidden + j, v.gate[k], n);
      }
      write<T>(a.h, row * a.hidden + j, v.h, n);
      write<C>(kCell == RNNCell::lstm ? a.c : nullptr, row * a.hidden + j, v.c, n);
    }
  }
}

// dh = dh_out + dh_next for one part of a row.
template <class T, class C>
void read_dh(const RNNCellGradientRows& a, int64_t row, int64_t j, int64_t n, C* dh) {
  C next[kCellPart] = {}, out[kCellPart] = {};
  read<T>(a.dh_next, row * a.values.hidden + j, next, n);
  if (a.dh_out && a.dh_column == 1) {
    read<T>(a.dh_out, row * a.dh_row + j, out, n);
  } else if (a.dh_out) {
    const T* from = static_cast<const T*>(a.dh_out) + row * a.dh_row + j * a.dh_column;
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<C>(from[i * a.dh_column]);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    dh[i] = out[i] + next[i];
  }
}

template <RNNCell kCell, class T>
void backward(const RNNCellGradientRows& a) {
  using C = Compute<T>;
  constexpr int kGates = gate_count(kCell);
  const RNNCellRows& in = a.values;
  CellBlock<C> v{};
  CellBlockGradients<C> d{};
  for (int64_t row = in.first; row < in.first + in.rows; ++row) {
    for (int64_t j = 0; j < in.hidden; j += kCellPart) {
      const int64_t n = in.hidden - j < kCellPart ? in.hidden - j : kCellPart;
      const int64_t at = row * in.hidden + j;
      read_values<T>(in, row, j, n, v);
      read<T>(in.h, at, v.h, n);
      read<C>(in.c, at, v.c, n);
      read<C>(a.dc, at, d.dc, n);
      read_dh<T>(a, row, j, n, d.dh);
      backward_block<kCell>(v, d, n);
      for (int k = 0; k < kGates; ++k) {
        write<T>(a.dgates, (row * kGates + k) * in.hidden + j, d.gate[k], n);
        if (kCell == RNNCell::gru) {
          write<T>(a.dproducts, (row * kGates + k) * in.hidden + j, d.product[k], n);
        }
      }
      write<C>(a.dc, at, d.dc, n);
      write<T>(a.dh_before, at, d.dh_before, n);
    }
  }
}

}  // namespace

void rnn_cell_rows(const RNNCellRows& a) {
  dispatch_floating("rnn_cell", a.dtype, [&]<class T>(Type<T>) {
    switch (a.cell) {
      case RNNCell::tanh: return forward<RNNCell::tanh, T>(a);
      case RNNCell::relu: return forward<RNNCell::relu, T>(a);
      case RNNCell::lstm: return forward<RNNCell::lstm, T>(a);
      default: return forward<RNNCell::gru, T>(a);
    }
  });
}

void rnn_cell_gradient_rows(const RNNCellGradientRows& a) {
  dispatch_floating("rnn_cell", a.values.dtype, [&]<class T>(Type<T>) {
    switch (a.values.cell) {
      case RNNCell::tanh: return backward<RNNCell::tanh, T>(a);
      case RNNCell::relu: return backward<RNNCell::relu, T>(a);
      case RNNCell::lstm: return backward<RNNCell::lstm, T>(a);
      default: return backward<RNNCell::gru, T>(a);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
