// Recurrent layers over a whole sequence.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// The parameters of one layer and direction. The rows hold the gates in PyTorch's order: i, f, g, o
// of an LSTM, r, z, n of a GRU. gates is 4, 3 or 1 (rnn_tanh, rnn_relu).
struct RecurrentWeights {
  Tensor weight_ih;     // [gates * hidden, input]
  Tensor weight_hh;     // [gates * hidden, hidden]
  Tensor bias_ih = {};  // [gates * hidden], both biases or none
  Tensor bias_hh = {};
  // [projection, hidden], lstm only, or undefined. With it the hidden state is weight_hr times the
  // output of the cell: h0, output, h_n and weight_hh have `projection` columns, c0 and c_n have
  // `hidden` (Sak et al., "Long Short-Term Memory Recurrent Neural Network Architectures for Large
  // Scale Acoustic Modeling", 2014).
  Tensor weight_hr = {};
};
struct RecurrentOptions {
  bool batch_first = false;
  bool reverse = false;  // from the last step to the first
  // The lengths of the sequences in a padded batch: i64 [batch] on the CPU, each 1 to steps, in any
  // order. Every sequence gives what it would give alone (as with PyTorch's pack_padded_sequence).
  // Elements of x after a sequence's end are not read and get the gradient 0; outputs there are 0;
  // h_n and c_n are the states after its own last step; `reverse` begins at its own end. Undefined:
  // every sequence has all steps.
  Tensor lengths = {};
};
struct RecurrentOutput {
  Tensor output;  // the hidden states of all steps, in the layout of x
  Tensor h_n;     // [batch, hidden], of the last computed step
  Tensor c_n;     // likewise, lstm only
};

// x [steps, batch, input], or [batch, steps, input] with batch_first; h0 and c0 [batch, hidden].
// Computes one matrix product for all inputs, then all steps in one kernel (CPU), or one product
// and one kernel per step. h = tanh(W x + b + U h + d)
RecurrentOutput rnn_tanh(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                         const RecurrentOptions& options = {});
// h = max(W x + b + U h + d, 0)
RecurrentOutput rnn_relu(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                         const RecurrentOptions& options = {});
// r, z = sigmoid(W x + b + U h + d), n = tanh(W x + b + r (U h + d)), h = (1 - z) n + z h
RecurrentOutput gru(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                    const RecurrentOptions& options = {});
// i, f, o = sigmoid(..), g = tanh(..) of W x + b + U h + d; c = f c + i g, h = o tanh(c), or with
// weight_hr h = weight_hr (o tanh(c))
RecurrentOutput lstm(const Tensor& x, const Tensor& h0, const Tensor& c0,
                     const RecurrentWeights& weights, const RecurrentOptions& options = {});

}  // namespace binade
