// Cases of attention and recurrent cells.
#include <bench/kernel_cases.h>
#include <binade/kernels/attention/attention.h>
#include <binade/kernels/rnn/rnn_cell.h>

#include <algorithm>

namespace binade::bench {
namespace {

using kernels::RNNCell;

double bytes_of(std::initializer_list<const View*> views) {
  double bytes = 0;
  for (const View* v : views) {
    bytes += static_cast<double>(v->numel) * static_cast<double>(size_of(v->dtype));
  }
  return bytes;
}

constexpr int64_t kHeadSize = 64;

// Causal self-attention of sequences with rows positions and cols features, in heads of 64; kPass 0
// is the forward, 1 the backward.
template <int kPass>
Prepared attention(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const Dims sizes{1, std::max<int64_t>(1, cols / kHeadSize), rows, kHeadSize};
  const View &q = o->random(dtype, sizes), &k = o->random(dtype, sizes),
             &v = o->random(dtype, sizes), &out = o->empty(dtype, sizes),
             &lse = o->empty(compute_dtype(dtype), {1, sizes[1], rows});
  const double pairs = static_cast<double>(rows) * static_cast<double>(rows) / 2;
  const double product = 2.0 * pairs * static_cast<double>(sizes[1] * kHeadSize);
  const auto forward = [&q, &k, &v, &out, &lse] {
    kernels::attention_forward({.q = q,
                                .k = k,
                                .v = v,
                                .out = out,
                                .lse = lse,
                                .scale = 0.125,
                                .visible = {.causal = true}});
  };
  if (kPass == 0) {
    return {o, forward, bytes_of({&q, &k, &v, &out, &lse}), 2 * product};
  }
  forward();
  const View &dout = o->random(dtype, sizes), &dq = o->empty(dtype, sizes),
             &dk = o->empty(dtype, sizes), &dv = o->empty(dtype, sizes);
  return {o,
          [&q, &k, &v, &out, &lse, &dout, &dq, &dk, &dv] {
            kernels::attention_backward({.q = q,
                                         .k = k,
                                         .v = v,
                                         .out = out,
                                         .lse = lse,
                                         .dout = dout,
                                         .dq = dq,
                                         .dk = dk,
                                         .dv = dv,
                                         .dmask = kNoView,
                                         .scale = 0.125,
                                         .visible = {.causal = true}});
          },
          bytes_of({&q, &k, &v, &out, &lse, &dout, &dq, &dk, &dv}), 5 * product};
}

// One step of an LSTM or GRU with batch size rows and hidden size cols.
template <RNNCell kCell, int kPass>
Prepared rnn_cell(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const bool lstm = kCell == RNNCell::lstm;
  const DType compute = compute_dtype(dtype);
  const Dims state{rows, cols}, wide{rows, gate_count(kCell) * cols};
  const View &gates = o->random(dtype, wide), &h = o->random(dtype, state);
  const View &c = lstm ? o->random(compute, state) : kNoView,
             &c_before = lstm ? o->random(compute, state) : kNoView,
             &products = lstm ? kNoView : o->random(dtype, wide),
             &h_before = lstm ? kNoView : o->random(dtype, state);
  if (kPass == 0) {
    return {o,
            [&] {
              kernels::rnn_cell_forward({.cell = kCell,
                                         .gates = gates,
                                         .h = h,
                                         .c = c,
                                         .c_before = c_before,
                                         .products = products,
                                         .h_before = h_before});
            },
            bytes_of({&gates, &gates, &h, &c, &c_before, &products, &h_before}), 0};
  }
  const View &dh = o->random(dtype, state), &dgates = o->empty(dtype, wide),
             &dc = lstm ? o->random(compute, state) : kNoView,
             &dproducts = lstm ? kNoView : o->empty(dtype, wide),
             &dh_before = lstm ? kNoView : o->empty(dtype, state);
  return {o,
          [&] {
            kernels::rnn_cell_backward({.cell = kCell,
                                        .gates = gates,
                                        .h = h,
                                        .c = c,
                                        .c_before = c_before,
                                        .products = products,
                                        .h_before = h_before,
                                        .dh_out = dh,
                                        .dgates = dgates,
                                        .dc = dc,
                                        .dproducts = dproducts,
                                        .dh_before = dh_before});
          },
          bytes_of({&gates, &c, &c_before, &products, &h_before, &dh, &dgates, &dc, &dc, &dproducts,
                    &dh_before}),
          0};
}

constexpr const char* kSequence = "causal, rows positions, cols features in heads of 64";
constexpr const char* kCells = "batch of rows, cols of hidden";

}  // namespace

std::vector<KernelCase> sequence_kernel_cases() {
  return {
      {"attention_forward", kSequence, attention<0>},
      {"attention_backward", kSequence, attention<1>},
      {"lstm_cell_forward", kCells, rnn_cell<RNNCell::lstm, 0>},
      {"lstm_cell_backward", kCells, rnn_cell<RNNCell::lstm, 1>},
      {"gru_cell_forward", kCells, rnn_cell<RNNCell::gru, 0>},
      {"gru_cell_backward", kCells, rnn_cell<RNNCell::gru, 1>},
  };
}

}  // namespace binade::bench
