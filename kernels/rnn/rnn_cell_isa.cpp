#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/rnn/rnn_cell_isa_internal.h>
#include <binade/kernels/rnn/rnn_cell_math_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kPart = 128;  // elements of hidden at a time, in arrays on the stack

// Arrays of one part of a row in the compute type.
template <class C>
struct Values {
  C gate[4][kPart], product[3][kPart], h_before[kPart], c_before[kPart], c[kPart], h[kPart];
};

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
void read_values(const RNNCellRows& a, int64_t row, int64_t j, int64_t n, Values<C>& v) {
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

template <RNNCell kCell, class C>
CellValues<C> values_at(const Values<C>& v, int64_t i) {
  if constexpr (kCell == RNNCell::lstm) {
    return {{v.gate[0][i], v.gate[1][i], v.gate[2][i], v.gate[3][i]},
            {},
            C(0),
            v.c_before[i],
            v.c[i],
            C(0)};
  } else if constexpr (kCell == RNNCell::gru) {
    return {{v.gate[0][i], v.gate[1][i], v.gate[2][i], C(0)},
            {v.product[0][i], v.product[1][i], v.product[2][i]},
            v.h_before[i],
            C(0),
            C(0),
            C(0)};
  } else {
    return {{v.gate[0][i], C(0), C(0), C(0)}, {}, C(0), C(0), C(0), v.h[i]};
  }
}

template <RNNCell kCell, class T>
void forward(const RNNCellRows& a) {
  using C = Compute<T>;
  constexpr int kGates = gate_count(kCell);
  Values<C> v{};
  for (int64_t row = a.first; row < a.first + a.rows; ++row) {
    for (int64_t j = 0; j < a.hidden; j += kPart) {
      const int64_t n = a.hidden - j < kPart ? a.hidden - j : kPart;
      read_values<T>(a, row, j, n, v);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        CellValues<C> one = values_at<kCell>(v, i);
        cell_forward<kCell>(one);
        for (int k = 0; k < kGates; ++k) {
          v.gate[k][i] = one.gate[k];
        }
        v.c[i] = one.c;
        v.h[i] = one.h;
      }
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
  C next[kPart] = {}, out[kPart] = {};
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
  Values<C> v{};
  C dh[kPart], dc[kPart] = {}, dgate[4][kPart], dproduct[3][kPart], dh_before[kPart];
  for (int64_t row = in.first; row < in.first + in.rows; ++row) {
    for (int64_t j = 0; j < in.hidden; j += kPart) {
      const int64_t n = in.hidden - j < kPart ? in.hidden - j : kPart;
      const int64_t at = row * in.hidden + j;
      read_values<T>(in, row, j, n, v);
      read<T>(in.h, at, v.h, n);
      read<C>(in.c, at, v.c, n);
      read<C>(a.dc, at, dc, n);
      read_dh<T>(a, row, j, n, dh);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        CellGradients<C> g{dh[i], dc[i], {}, {}, C(0)};
        cell_backward<kCell>(values_at<kCell>(v, i), g);
        for (int k = 0; k < kGates; ++k) {
          dgate[k][i] = g.gate[k];
        }
        for (int k = 0; k < 3 && kCell == RNNCell::gru; ++k) {
          dproduct[k][i] = g.product[k];
        }
        dc[i] = g.dc;
        dh_before[i] = g.dh_before;
      }
      for (int k = 0; k < kGates; ++k) {
        write<T>(a.dgates, (row * kGates + k) * in.hidden + j, dgate[k], n);
        if (kCell == RNNCell::gru) {
          write<T>(a.dproducts, (row * kGates + k) * in.hidden + j, dproduct[k], n);
        }
      }
      write<C>(a.dc, at, dc, n);
      write<T>(a.dh_before, at, dh_before, n);
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
