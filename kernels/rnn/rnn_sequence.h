// All steps of a recurrent layer on the CPU. The recurrent weights are packed once for the whole
// sequence; in every step a register tile multiplies some rows of the state by the weights of some
// hidden units, and the cell of these units is computed while their sums are in the first-level
// cache. An element's chain of additions is that of gemm, so in f32 and f64 the bits are those of a
// gemm and an rnn_cell for each step.
#pragma once
#include <binade/kernels/base/weight_packing.h>
#include <binade/kernels/rnn/rnn_cell.h>

#include <vector>

namespace binade::kernels {

// Indices over time: of computation step i in a sequence [steps, ...], and of the states
// before and after it in [steps + 1, ...]. The start state is at the end where computation begins.
struct RNNOrder {
  bool reverse;
  int64_t steps;
  // For sequences that end early: step i computes only the first rows[i] rows of the batch. The
  // numbers never grow, and all rows take part in the first step. Empty: all rows in every step.
  std::vector<int64_t> rows = {};
  int64_t rows_in(int64_t i, int64_t batch) const {
    return rows.empty() ? batch : rows[static_cast<size_t>(i)];
  }
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
  int64_t before(int64_t i) const { return reverse ? steps - i : i; }
  int64_t after(int64_t i) const { return before(i + 1); }
};

namespace cpu {

// True if sequences of this dtype run here. False for bf16 by the processor's own instructions,
// where a gemm per step is faster, and for Eigen's products, which the user asked for.
bool rnn_sequence_runs(DType dtype);

// Views are contiguous and of the dtype of h, c of its compute dtype. Rows that have ended are
// neither read nor written.
struct RNNSequenceForward {
  RNNCell cell;
  RNNOrder order;
  const View& gates;               // [steps, batch, gates x hidden]: a in, the activated gates out
  const View& h;                   // [steps + 1, batch, hidden], with the start state
  const View& c = kNoView;         // lstm: likewise
  const View& products = kNoView;  // gru: b, [steps, batch, 3 x hidden], written
  const View& weight;              // [gates x hidden, hidden], any strides
  const View& bias = kNoView;      // [gates x hidden], added to the products of the state
  WeightPacking* packing = nullptr;  // of weight
};
void rnn_sequence_forward(const RNNSequenceForward& a);

// The arguments of rnn_cell_backward for all steps.
struct RNNSequenceBackward {
  RNNCell cell;
  RNNOrder order;
  const View& gates;
  const View& h;
  const View& c = kNoView;
  const View& products = kNoView;
  const View& weight;
  const View& dh_out = kNoView;   // [steps, batch, hidden], any strides
  const View& dh_last = kNoView;  // [batch, hidden], any strides: of each row's last state
  const View& dgates;             // as gates, written
  const View& dproducts = kNoView;
  const View& dc = kNoView;  // lstm: [batch, hidden], of each row's last c in, of the start c out
  const View& dh_before = kNoView;  // gru: [batch, hidden], the direct part of the start state's
};
void rnn_sequence_backward(const RNNSequenceBackward& a);

}  // namespace cpu
}  // namespace binade::kernels
