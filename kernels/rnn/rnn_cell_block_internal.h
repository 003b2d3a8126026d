// A block of elements of a recurrent cell, in arrays of the compute type on the stack. Include only
// from *_isa.cpp files.
#pragma once
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/rnn/rnn_cell_math_internal.h>

namespace binade::kernels {
namespace {

constexpr int64_t kCellPart = 128;  // elements of a block

template <class C>
struct CellBlock {
  alignas(64) C gate[4][kCellPart];
  alignas(64) C product[3][kCellPart];
  alignas(64) C h_before[kCellPart];
  alignas(64) C c_before[kCellPart];
  alignas(64) C c[kCellPart];
  alignas(64) C h[kCellPart];
};

// The gradients of a block; dc is read and written.
template <class C>
struct CellBlockGradients {
  alignas(64) C dh[kCellPart];
  alignas(64) C dc[kCellPart];
  alignas(64) C gate[4][kCellPart];
  alignas(64) C product[3][kCellPart];
  alignas(64) C dh_before[kCellPart];
};

template <RNNCell kCell, class C>
CellValues<C> values_at(const CellBlock<C>& v, int64_t i) {
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

// Replaces the gates by their activations and computes c and h.
template <RNNCell kCell, class C>
void forward_block(CellBlock<C>& v, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    CellValues<C> one = values_at<kCell>(v, i);
    cell_forward<kCell>(one);
    for (int k = 0; k < gate_count(kCell); ++k) {
      v.gate[k][i] = one.gate[k];
    }
    v.c[i] = one.c;
    v.h[i] = one.h;
  }
}

template <RNNCell kCell, class C>
void backward_block(const CellBlock<C>& v, CellBlockGradients<C>& d, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    CellGradients<C> g{d.dh[i], d.dc[i], {}, {}, C(0)};
    cell_backward<kCell>(values_at<kCell>(v, i), g);
    for (int k = 0; k < gate_count(kCell); ++k) {
      d.gate[k][i] = g.gate[k];
    }
    for (int k = 0; k < 3 && kCell == RNNCell::gru; ++k) {
      d.product[k][i] = g.product[k];
    }
    d.dc[i] = g.dc;
    d.dh_before[i] = g.dh_before;
  }
}

}  // namespace
}  // namespace binade::kernels
