// The arithmetic of recurrent cells for one element, on the host and on the device. In an anonymous
// namespace because each instruction set compiles its own copy (kernels/base/isa.h).
#pragma once
#include <binade/kernels/base/pointwise_math.h>
#include <binade/kernels/rnn/rnn_cell.h>

namespace binade::kernels {
namespace {

// The values that a step reads and writes for one element of hidden; each cell uses some of them.
template <class C>
struct CellValues {
  C gate[4];     // a in, activated gates out
  C product[3];  // b of gru
  C h_before, c_before, c, h;
};

template <class C>
struct CellGradients {
  C dh, dc;      // in; dc also out
  C gate[4];     // da
  C product[3];  // db of gru
  C dh_before;   // direct part
};

template <RNNCell kCell, class C>
BINADE_HD inline void cell_forward(CellValues<C>& v) {
  if constexpr (kCell == RNNCell::tanh) {
    v.h = math_tanh(v.gate[0]);
  } else if constexpr (kCell == RNNCell::relu) {
    v.h = v.gate[0] < C(0) ? C(0) : v.gate[0];
  } else if constexpr (kCell == RNNCell::lstm) {
    v.gate[0] = math_sigmoid(v.gate[0]);
    v.gate[1] = math_sigmoid(v.gate[1]);
    v.gate[2] = math_tanh(v.gate[2]);
    v.gate[3] = math_sigmoid(v.gate[3]);
    v.c = v.gate[1] * v.c_before + v.gate[0] * v.gate[2];
    v.h = v.gate[3] * math_tanh(v.c);
  } else {
    v.gate[0] = math_sigmoid(v.gate[0] + v.product[0]);
    v.gate[1] = math_sigmoid(v.gate[1] + v.product[1]);
    v.gate[2] = math_tanh(v.gate[2] + v.gate[0] * v.product[2]);
    v.h = (C(1) - v.gate[1]) * v.gate[2] + v.gate[1] * v.h_before;
  }
}

// Computes the gradients from the values that the forward wrote.
template <RNNCell kCell, class C>
BINADE_HD inline void cell_backward(const CellValues<C>& v, CellGradients<C>& g) {
  if constexpr (kCell == RNNCell::tanh) {
    g.gate[0] = g.dh * (C(1) - v.h * v.h);
  } else if constexpr (kCell == RNNCell::relu) {
    g.gate[0] = v.h > C(0) ? g.dh : C(0);
  } else if constexpr (kCell == RNNCell::lstm) {
    const C i = v.gate[0], f = v.gate[1], n = v.gate[2], o = v.gate[3];
    const C t = math_tanh(v.c);
    const C dc = g.dc + g.dh * o * (C(1) - t * t);
    g.gate[0] = dc * n * i * (C(1) - i);
    g.gate[1] = dc * v.c_before * f * (C(1) - f);
    g.gate[2] = dc * i * (C(1) - n * n);
    g.gate[3] = g.dh * t * o * (C(1) - o);
    g.dc = dc * f;
  } else {
    const C r = v.gate[0], z = v.gate[1], n = v.gate[2];
    const C dn = g.dh * (C(1) - z) * (C(1) - n * n);
    const C dr = dn * v.product[2] * r * (C(1) - r);
    const C dz = g.dh * (v.h_before - n) * z * (C(1) - z);
    g.gate[0] = g.product[0] = dr;
    g.gate[1] = g.product[1] = dz;
    g.gate[2] = dn;
    g.product[2] = dn * r;
    g.dh_before = g.dh * z;
  }
}

}  // namespace
}  // namespace binade::kernels
