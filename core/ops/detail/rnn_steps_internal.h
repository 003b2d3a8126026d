// The steps of recurrent layers, forward and backward. Sequences are [steps, batch, ...] here. The
// hidden states of all steps are one array (RNNOrder), and so are the cell states: the gradient of
// the recurrent weights is one product over the sequence.
#pragma once
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/rnn/rnn_cell.h>
#include <binade/kernels/rnn/rnn_sequence.h>

#include <span>

namespace binade::detail {

using kernels::RNNCell;

struct RecurrentSizes {
  int64_t steps, batch, input, hidden, gates;  // gates: rows of the weights
  int64_t state;                               // size of h: of the projection, or hidden
};

// Settings that the backward captures besides tensors.
struct RecurrentPlan : kernels::RNNOrder {
  RNNCell cell;
  RecurrentSizes n;
  // True if all steps run in one kernel, which packs the recurrent weights for `products` products
  // with the state if they are not packed already.
  bool is_one_kernel(const Tensor& h, const Tensor& w_hr, int64_t products, bool packed) const;
};

struct RecurrentInputs {
  const Tensor &x, &h0, &c0, &w_ih, &w_hh, &b_ih, &b_hh, &w_hr;
};

// Values of the forward that the backward needs, in the order of save.
struct RecurrentStates {
  Tensor gates;     // [steps, batch, gates * hidden]
  Tensor h;         // [steps + 1, batch, state]
  Tensor c;         // lstm: [steps + 1, batch, hidden], compute dtype
  Tensor products;  // gru: as gates
  Tensor inner;     // with a projection: [steps, batch, hidden], its input
};

// The gradients that the steps compute: for the gates, and for the states before the first step.
struct RecurrentGradients {
  Tensor gates, products;  // sequences
  Tensor h, c;             // [batch, state], [batch, hidden]
  Tensor states;           // with a projection: [steps, batch, state], of h after each step
};

// One place of a sequence: [batch, columns], or `count` rows of it from `first` on.
Tensor at_step(const Tensor& sequence, int64_t place);
Tensor at_step(const Tensor& sequence, int64_t place, int64_t first, int64_t count);
// `count` places of a sequence, as rows of one matrix.
Tensor as_rows(const Tensor& sequence, int64_t first, int64_t count);
inline Tensor all_rows(const Tensor& sequence) { return as_rows(sequence, 0, sequence.sizes()[0]); }

// Runs all steps and returns the states. If rows end early (RNNOrder::rows), h and inner are 0
// after their ends; gates, c and products are never read there.
RecurrentStates run_recurrent(const RecurrentPlan& plan, const RecurrentInputs& in);
// dys: the upstream gradients of the output, of each row's last h and, for an lstm, of its last c;
// each may be undefined. After the ends of rows the gradients of gates and products are 0.
RecurrentGradients run_recurrent_back(const RecurrentPlan& plan, const RecurrentStates& s,
                                      const Tensor& w_hh, const Tensor& w_hr,
                                      std::span<const Tensor> dys);

}  // namespace binade::detail
