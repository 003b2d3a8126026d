// Recurrent cells on the device: one thread per element of the hidden state; adjacent threads take
// adjacent elements of every gate. Bound by memory.
#include <binade/kernels/rnn/rnn_cell.h>
#include <binade/kernels/rnn/rnn_cell_math_internal.h>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

template <class T>
struct CellArrays {
  using C = Compute<T>;
  int64_t count, hidden;  // elements of h, of a row
  T *gates, *h;
  C *c, *c_before;
  T *products, *h_before;

  template <RNNCell kCell>
  __device__ __forceinline__ int64_t gate(int64_t row, int64_t column, int k) const {
    return (row * gate_count(kCell) + k) * hidden + column;
  }
};

template <class T>
struct CellGradientArrays {
  using C = Compute<T>;
  const T *dh_out, *dh_next;
  int64_t dh_row, dh_column;
  T* dgates;
  C* dc;
  T *dproducts, *dh_before;
};

// Loads the operands of the cell for one element, except h and c.
template <RNNCell kCell, class T>
__device__ __forceinline__ CellValues<Compute<T>> load_values(const CellArrays<T>& a, int64_t at,
                                                              int64_t row, int64_t column) {
  using C = Compute<T>;
  CellValues<C> v{};
#pragma unroll
  for (int k = 0; k < gate_count(kCell); ++k) {
    v.gate[k] = static_cast<C>(a.gates[a.template gate<kCell>(row, column, k)]);
    if constexpr (kCell == RNNCell::gru) {
      v.product[k] = static_cast<C>(a.products[a.template gate<kCell>(row, column, k)]);
    }
  }
  if constexpr (kCell == RNNCell::gru) {
    v.h_before = static_cast<C>(a.h_before[at]);
  } else if constexpr (kCell == RNNCell::lstm) {
    v.c_before = a.c_before[at];
  }
  return v;
}

template <RNNCell kCell, class T>
__global__ void __launch_bounds__(kThreads) rnn_cell_forward_kernel(CellArrays<T> a) {
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t at = first; at < a.count; at += int64_t{gridDim.x} * kThreads) {
    const int64_t row = at / a.hidden, column = at % a.hidden;
    CellValues<Compute<T>> v = load_values<kCell>(a, at, row, column);
    cell_forward<kCell>(v);
    if constexpr (!is_plain(kCell)) {
#pragma unroll
      for (int k = 0; k < gate_count(kCell); ++k) {
        a.gates[a.template gate<kCell>(row, column, k)] = static_cast<T>(v.gate[k]);
      }
    }
    if constexpr (kCell == RNNCell::lstm) {
      a.c[at] = v.c;
    }
    a.h[at] = static_cast<T>(v.h);
  }
}

template <RNNCell kCell, class T>
__global__ void __launch_bounds__(kThreads)
    rnn_cell_backward_kernel(CellArrays<T> a, CellGradientArrays<T> d) {
  using C = Compute<T>;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t at = first; at < a.count; at += int64_t{gridDim.x} * kThreads) {
    const int64_t row = at / a.hidden, column = at % a.hidden;
    CellValues<C> v = load_values<kCell>(a, at, row, column);
    CellGradients<C> g{};
    g.dh = (d.dh_out ? static_cast<C>(d.dh_out[row * d.dh_row + column * d.dh_column]) : C(0)) +
           (d.dh_next ? static_cast<C>(d.dh_next[at]) : C(0));
    if constexpr (kCell == RNNCell::lstm) {
      v.c = a.c[at];
      g.dc = d.dc[at];
    } else if constexpr (is_plain(kCell)) {
      v.h = static_cast<C>(a.h[at]);
    }
    cell_backward<kCell>(v, g);
#pragma unroll
    for (int k = 0; k < gate_count(kCell); ++k) {
      d.dgates[a.template gate<kCell>(row, column, k)] = static_cast<T>(g.gate[k]);
      if constexpr (kCell == RNNCell::gru) {
        d.dproducts[a.template gate<kCell>(row, column, k)] = static_cast<T>(g.product[k]);
      }
    }
    if constexpr (kCell == RNNCell::lstm) {
      d.dc[at] = g.dc;
    } else if constexpr (kCell == RNNCell::gru) {
      d.dh_before[at] = static_cast<T>(g.dh_before);
    }
  }
}

template <class T, class Arguments>
CellArrays<T> arrays_of(const Arguments& a) {
  using C = Compute<T>;
  return {a.h.numel,
          a.h.size(1),
          a.gates.template as<T>(),
          a.h.template as<T>(),
          a.c.template as<C>(),
          a.c_before.template as<C>(),
          a.products.template as<T>(),
          a.h_before.template as<T>()};
}

template <RNNCell kCell, class T>
void forward(const RNNCellForward& a) {
  launch({"rnn_cell_forward_kernel", grid_blocks(a.h.numel, kThreads), kThreads},
         rnn_cell_forward_kernel<kCell, T>, arrays_of<T>(a));
}

template <RNNCell kCell, class T>
void backward(const RNNCellBackward& a) {
  const CellGradientArrays<T> d{a.dh_out.as<const T>(),
                                a.dh_next.as<const T>(),
                                a.dh_out ? a.dh_out.strides[0] : 0,
                                a.dh_out ? a.dh_out.strides[1] : 0,
                                a.dgates.as<T>(),
                                a.dc.as<Compute<T>>(),
                                a.dproducts.as<T>(),
                                a.dh_before.as<T>()};
  launch({"rnn_cell_backward_kernel", grid_blocks(a.h.numel, kThreads), kThreads},
         rnn_cell_backward_kernel<kCell, T>, arrays_of<T>(a), d);
}

}  // namespace

void cuda::rnn_cell_forward(const RNNCellForward& a) {
  check_arguments(a);
  if (a.h.numel == 0) {
    return;
  }
  dispatch_floating("rnn_cell", a.h.dtype, [&]<class T>(Type<T>) {
    switch (a.cell) {
      case RNNCell::tanh: return forward<RNNCell::tanh, T>(a);
      case RNNCell::relu: return forward<RNNCell::relu, T>(a);
      case RNNCell::lstm: return forward<RNNCell::lstm, T>(a);
      default: return forward<RNNCell::gru, T>(a);
    }
  });
}

void cuda::rnn_cell_backward(const RNNCellBackward& a) {
  check_arguments(a);
  if (a.h.numel == 0) {
    return;
  }
  dispatch_floating("rnn_cell backward", a.h.dtype, [&]<class T>(Type<T>) {
    switch (a.cell) {
      case RNNCell::tanh: return backward<RNNCell::tanh, T>(a);
      case RNNCell::relu: return backward<RNNCell::relu, T>(a);
      case RNNCell::lstm: return backward<RNNCell::lstm, T>(a);
      default: return backward<RNNCell::gru, T>(a);
    }
  });
}

}  // namespace binade::kernels
