// One step of a recurrent layer after its matrix products: gates, cell state and hidden state in
// one pass. Views are contiguous unless stated otherwise; a view of a sequence is the slice of one
// step. Arithmetic is in the compute dtype; the state c of an LSTM is stored in it.
//
//   tanh:  h = tanh(a)
//   relu:  h = max(a, 0)
//   lstm:  i, f, o = sigmoid(a_i), sigmoid(a_f), sigmoid(a_o), g = tanh(a_g)
//          c = f c_before + i g, h = o tanh(c)
//   gru:   r, z = sigmoid(a_r + b_r), sigmoid(a_z + b_z), n = tanh(a_n + r b_n)
//          h = (1 - z) n + z h_before
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

enum class RNNCell : uint8_t { tanh, relu, lstm, gru };
// A cell without gates: its gradient needs only h.
constexpr bool is_plain(RNNCell cell) { return cell == RNNCell::tanh || cell == RNNCell::relu; }
constexpr int gate_count(RNNCell cell) {
  return is_plain(cell) ? 1 : cell == RNNCell::lstm ? 4 : 3;
}

// a: `gates` [batch, gates x hidden], overwritten by the activated gates (unchanged by cells
// without gates). b: `products` [batch, 3 x hidden], gru only.
struct RNNCellForward {
  RNNCell cell;
  const View& gates;
  const View& h;                   // [batch, hidden], written
  const View& c = kNoView;         // lstm: [batch, hidden], written, compute dtype
  const View& c_before = kNoView;  // lstm, compute dtype
  const View& products = kNoView;  // gru
  const View& h_before = kNoView;  // gru
};
BINADE_KERNEL(rnn_cell_forward, RNNCellForward, h)

// dh = dh_out + dh_next; each may be kNoView; dh_out has any strides. Writes da to dgates and, for
// gru, db to dproducts and dh z, the direct part of the gradient of h_before, to dh_before (which
// may be dh_next). dc [batch, hidden], compute dtype: the gradient of c in, of c_before out.
struct RNNCellBackward {
  RNNCell cell;
  const View& gates;  // as written by the forward
  const View& h;
  const View& c = kNoView;
  const View& c_before = kNoView;
  const View& products = kNoView;
  const View& h_before = kNoView;
  const View& dh_out = kNoView;
  const View& dh_next = kNoView;
  const View& dgates;
  const View& dc = kNoView;
  const View& dproducts = kNoView;
  const View& dh_before = kNoView;
};
BINADE_KERNEL(rnn_cell_backward, RNNCellBackward, h)

}  // namespace binade::kernels
