// Recurrent layers: rnn_tanh, rnn_relu, gru, lstm. The steps are computed by
// core/ops/detail/rnn_steps_internal.h.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/rnn_steps_internal.h>
#include <binade/core/ops/rnn.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/reduce/reduce.h>

#include <algorithm>
#include <numeric>

namespace binade {
namespace {

using detail::all_rows;
using detail::as_rows;
using detail::at_step;
using detail::RecurrentGradients;
using detail::RecurrentInputs;
using detail::RecurrentPlan;
using detail::RecurrentSizes;
using detail::RecurrentStates;
using kernels::RNNCell;

void sum_rows(const Tensor& m, const Tensor& target) {
  if (target.defined()) {
    kernels::reduce_forward(
        {.op = kernels::Reduce::sum,
         .x = m,
         .y = make_view(target, {1, target.numel()}, {0, target.strides()[0]})});
  }
}

Grads backward_of(const RecurrentPlan& plan, std::span<const Tensor> dys, Needs needs,
                  std::span<const Tensor> saved) {
  const Tensor &x = saved[0], &w_ih = saved[1], &w_hh = saved[2], &w_hr = saved[3];
  const RecurrentStates s{saved[4], saved[5], saved[6], saved[7], saved[8]};
  const RecurrentGradients d = detail::run_recurrent_back(plan, s, w_hh, w_hr, dys);
  const Tensor gates = all_rows(d.gates);
  const Tensor products = d.products.defined() ? all_rows(d.products) : gates;
  std::vector<Tensor> out(8);
  for (int i : {0, 3, 4, 5, 6, 7}) {
    out[static_cast<size_t>(i)] = needs.out(i);
  }
  if (out[0].defined()) {
    kernels::gemm({.a = gates, .b = w_ih, .y = all_rows(out[0])});
  }
  if (out[3].defined()) {
    kernels::gemm({.a = transposed(gates), .b = all_rows(x), .y = out[3]});
  }
  if (out[4].defined()) {
    const Tensor before = as_rows(s.h, plan.reverse ? 1 : 0, plan.n.steps);
    kernels::gemm({.a = transposed(products), .b = before, .y = out[4]});
  }
  if (out[7].defined()) {
    kernels::gemm({.a = transposed(all_rows(d.states)), .b = all_rows(s.inner), .y = out[7]});
  }
  sum_rows(gates, out[5]);
  sum_rows(products, out[6]);
  out[1] = needs[1] ? d.h : Tensor();
  if (needs[2]) {
    out[2] = cast(d.c, x.dtype());
  }
  return Grads(std::move(out));
}

void check_bias(const Op& op, const char* name, const Tensor& b, const Tensor& w) {
  check(b.dim() == 1 && b.size(0) == w.size(0) && b.dtype() == w.dtype(), op.name, ": got ", name,
        " ", b.dtype(), " ", b.sizes(), ", expected ", w.dtype(), " [", w.size(0), "]");
}

RecurrentSizes check_inputs(const Op& op, RNNCell cell, const RecurrentInputs& in) {
  const int64_t gates = gate_count(cell);
  for (const Tensor* t : {&in.x, &in.h0, &in.w_ih, &in.w_hh}) {
    check_floating(op.name, *t);
    check(t->dtype() == in.x.dtype(), op.name, ": got dtypes ", in.x.dtype(), " and ", t->dtype(),
          ", expected one floating dtype");
  }
  check(in.x.dim() == 3 && in.x.sizes()[0] > 0, op.name, ": got x of shape ", in.x.sizes(),
        ", expected steps, batch and input with at least one step");
  check(in.w_ih.dim() == 2 && in.w_ih.size(1) == in.x.size(2) && in.w_ih.size(0) % gates == 0,
        op.name, ": got weight_ih ", in.w_ih.sizes(), ", expected [", gates, " * hidden, ",
        in.x.size(2), "]");
  RecurrentSizes n{in.x.size(0),    in.x.size(1),           in.x.size(2), in.w_ih.size(0) / gates,
                   in.w_ih.size(0), in.w_ih.size(0) / gates};
  if (in.w_hr.defined()) {
    check(cell == RNNCell::lstm && in.w_hr.dim() == 2 && in.w_hr.size(1) == n.hidden &&
              in.w_hr.dtype() == in.x.dtype(),
          op.name, ": got weight_hr ", in.w_hr.dtype(), " ", in.w_hr.sizes(),
          ", expected [projection, ", n.hidden, "] of ", in.x.dtype(), ", for lstm only");
    n.state = in.w_hr.size(0);
  }
  const Dims recurrent{n.gates, n.state}, state{n.batch, n.state}, cell_state{n.batch, n.hidden};
  check(in.w_hh.sizes() == recurrent, op.name, ": got weight_hh ", in.w_hh.sizes(), ", expected ",
        recurrent);
  check(in.h0.sizes() == state, op.name, ": got h0 ", in.h0.sizes(), ", expected ", state);
  if (cell == RNNCell::lstm) {
    check_floating(op.name, in.c0);
    check(in.c0.sizes() == cell_state && in.c0.dtype() == in.x.dtype(), op.name, ": got c0 ",
          in.c0.dtype(), " ", in.c0.sizes(), ", expected ", in.x.dtype(), " ", cell_state);
  }
  check(in.b_ih.defined() == in.b_hh.defined(), op.name,
        ": got one of bias_ih and bias_hh, expected both or neither");
  if (in.b_ih.defined()) {
    check_bias(op, "bias_ih", in.b_ih, in.w_ih);
    check_bias(op, "bias_hh", in.b_hh, in.w_ih);
  }
  return n;
}

// x is [steps, batch, input] and contiguous.
RecurrentOutput run(const Op& op, const RecurrentPlan& plan, const RecurrentInputs& in) {
  const RecurrentStates s = detail::run_recurrent(plan, in);
  const RecurrentSizes& n = plan.n;
  const auto last_of = [&](const Tensor& states) {
    const int64_t columns = states.sizes()[2];
    Tensor last = empty({n.batch, columns}, in.x.dtype(), in.x.device());
    int64_t later = 0;
    for (int64_t i = n.steps - 1; i >= 0; --i) {  // the rows that end with step i
      const int64_t rows = plan.rows_in(i, n.batch), count = rows - later;
      if (count > 0) {
        kernels::copy({.x = at_step(states, plan.after(i), later, count),
                       .y = make_view(last, {count, columns}, {columns, 1}, later * columns)});
      }
      later = rows;
    }
    return last;
  };
  const int64_t row = n.batch * n.state;
  std::vector<Tensor> out{
      make_view(s.h, {n.steps, n.batch, n.state}, {row, n.state, 1}, plan.reverse ? 0 : row),
      last_of(s.h)};
  if (plan.cell == RNNCell::lstm) {
    out.push_back(last_of(s.c));
  }
  const Tensor inputs[] = {in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.w_hr};
  const Tensor keep[] = {in.x, in.w_ih, in.w_hh, in.w_hr, s.gates, s.h, s.c, s.products, s.inner};
  op.record_many(inputs, out, keep,
                 [plan](std::span<const Tensor> dys, Needs needs, std::span<const Tensor> saved) {
                   return backward_of(plan, dys, needs, saved);
                 });
  return {out[0], out[1], out.size() > 2 ? out[2] : Tensor()};
}

// A user's sequence and the states before its first step; c0 is defined for lstm only.
struct Sequence {
  const Tensor &x, &h0, &c0;
};

// Sorts the sequences of a padded batch for the steps: longest first and each from its own first
// step (RNNOrder::rows). It also restores the caller's order.
class PaddedBatch {
 public:
  PaddedBatch(const Op& op, const Tensor& lengths, const RecurrentSizes& n, bool reverse,
              Device device);

  std::vector<int64_t> rows() const { return rows_; }
  // A sequence [steps, batch, columns] in the order of the steps, with zeros after each end.
  Tensor enter_sequence(const Tensor& x) const {
    return reshape(masked_fill(moved(flat(x), to_steps_), ended_, 0), x.sizes());
  }
  Tensor enter_state(const Tensor& h) const { return h.defined() ? moved(h, to_ranks_) : h; }
  Tensor leave_sequence(const Tensor& y) const {
    return reshape(moved(flat(y), from_steps_), y.sizes());
  }
  Tensor leave_state(const Tensor& h) const { return h.defined() ? moved(h, from_ranks_) : h; }

 private:
  static Tensor flat(const Tensor& x) { return reshape(x, {x.size(0) * x.size(1), x.size(2)}); }
  Tensor moved(const Tensor& x, const Tensor& index) const {
    return in_order_ ? x : index_select(x, 0, index);
  }

  bool in_order_;  // nothing moves
  std::vector<int64_t> rows_;
  Tensor ended_;                  // bool [steps * batch, 1], of the steps' order
  Tensor to_steps_, from_steps_;  // i64 [steps * batch]: which place of the other order is here
  Tensor to_ranks_, from_ranks_;  // i64 [batch], likewise
};

PaddedBatch::PaddedBatch(const Op& op, const Tensor& lengths, const RecurrentSizes& n, bool reverse,
                         Device device) {
  check(lengths.dtype() == DType::i64 && lengths.device().is_cpu() &&
            lengths.sizes() == Dims{n.batch},
        op.name, ": got lengths ", lengths.dtype(), " ", lengths.sizes(), " on ", lengths.device(),
        ", expected i64 [", n.batch, "] on cpu, one per sequence");
  const std::vector<int64_t> length = lengths.to_vector<int64_t>();
  for (const int64_t steps : length) {
    check(steps >= 1 && steps <= n.steps, op.name, ": got a length of ", steps, ", expected 1 to ",
          n.steps, ", the steps of x");
  }
  const auto batch = static_cast<size_t>(n.batch), steps = static_cast<size_t>(n.steps);
  std::vector<int64_t> order(batch), rank(batch);  // the sequence of a rank, and the inverse
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return length[static_cast<size_t>(a)] > length[static_cast<size_t>(b)];
  });
  in_order_ = !reverse && std::is_sorted(order.begin(), order.end());
  rows_.assign(steps, 0);
  std::vector<int64_t> to(batch * steps), from(batch * steps), ended(batch * steps);
  for (size_t r = 0; r < batch; ++r) {
    const auto b = static_cast<size_t>(order[r]), end = static_cast<size_t>(length[b]);
    rank[b] = static_cast<int64_t>(r);
    for (size_t t = 0; t < steps; ++t) {
      const size_t other = reverse && t < end ? end - 1 - t : t;
      rows_[t] += t < end ? 1 : 0;
      to[t * batch + r] = static_cast<int64_t>(other * batch + b);
      from[t * batch + b] = static_cast<int64_t>(other * batch + r);
      ended[t * batch + r] = t < end ? 0 : 1;
    }
  }
  const Dims places{n.steps * n.batch};
  ended_ = ne(Tensor::from(ended, {places[0], 1}, device), 0);
  to_steps_ = Tensor::from(to, places, device);
  from_steps_ = Tensor::from(from, places, device);
  to_ranks_ = Tensor::from(order, {n.batch}, device);
  from_ranks_ = Tensor::from(rank, {n.batch}, device);
}

RecurrentOutput recurrent(const Op& op, RNNCell cell, const Sequence& given,
                          const RecurrentWeights& weights, const RecurrentOptions& options) {
  auto [x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr] =
      op.enter(given.x, given.h0, given.c0, weights.weight_ih, weights.weight_hh, weights.bias_ih,
               weights.bias_hh, weights.weight_hr);
  check_floating(op.name, x);
  check(x.dim() == 3, op.name, ": got x of shape ", x.sizes(), ", expected three dimensions");
  const Tensor sequence = contiguous(options.batch_first ? transpose(x, 0, 1) : x);
  const RecurrentInputs in{sequence, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr};
  const RecurrentSizes sizes = check_inputs(op, cell, in);
  RecurrentPlan plan{{.reverse = options.reverse, .steps = sizes.steps}, cell, sizes};
  RecurrentOutput out;
  if (options.lengths.defined()) {
    const PaddedBatch padded(op, options.lengths, sizes, options.reverse, x.device());
    plan.reverse = false;
    plan.rows = padded.rows();
    out = run(op, plan,
              {padded.enter_sequence(sequence), padded.enter_state(h0), padded.enter_state(c0),
               w_ih, w_hh, b_ih, b_hh, w_hr});
    out = {padded.leave_sequence(out.output), padded.leave_state(out.h_n),
           padded.leave_state(out.c_n)};
  } else {
    out = run(op, plan, in);
  }
  if (options.batch_first) {
    out.output = transpose(out.output, 0, 1);
  }
  return out;
}

}  // namespace

RecurrentOutput rnn_tanh(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                         const RecurrentOptions& options) {
  static constexpr Op kOp{"rnn_tanh", OpClass::contraction};
  return recurrent(kOp, RNNCell::tanh, {x, h0, Tensor()}, weights, options);
}

RecurrentOutput rnn_relu(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                         const RecurrentOptions& options) {
  static constexpr Op kOp{"rnn_relu", OpClass::contraction};
  return recurrent(kOp, RNNCell::relu, {x, h0, Tensor()}, weights, options);
}

RecurrentOutput gru(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                    const RecurrentOptions& options) {
  static constexpr Op kOp{"gru", OpClass::contraction};
  return recurrent(kOp, RNNCell::gru, {x, h0, Tensor()}, weights, options);
}

RecurrentOutput lstm(const Tensor& x, const Tensor& h0, const Tensor& c0,
                     const RecurrentWeights& weights, const RecurrentOptions& options) {
  static constexpr Op kOp{"lstm", OpClass::contraction};
  return recurrent(kOp, RNNCell::lstm, {x, h0, c0}, weights, options);
}

}  // namespace binade
