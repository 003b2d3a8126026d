// Recurrent layers: rnn_tanh, rnn_relu, gru, lstm. Sequences are [steps, batch, ...] here. The
// hidden states of all steps are one array (RNNOrder), and so are the cell states: the gradient of
// the recurrent weights is one product over the sequence.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/ops/rnn.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/reduce/reduce.h>
#include <binade/kernels/rnn/rnn_cell.h>
#include <binade/kernels/rnn/rnn_sequence.h>

namespace binade {
namespace {

using kernels::RNNCell;

struct Sizes {
  int64_t steps, batch, input, hidden, gates;  // gates: rows of the weights
  int64_t state;                               // size of h: of the projection, or hidden
};

// Settings that the backward captures besides tensors.
struct Plan : kernels::RNNOrder {
  RNNCell cell;
  Sizes n;
  // True if all steps run in one kernel, which packs the recurrent weights for `products` products
  // with the state if they are not packed already.
  bool is_one_kernel(const Tensor& h, const Tensor& w_hr, int64_t products, bool packed) const {
    constexpr int64_t kRows = 8;  // with fewer rows packing takes longer than it saves
    return h.device().is_cpu() && !w_hr.defined() && kernels::cpu::rnn_sequence_runs(h.dtype()) &&
           (products * n.batch >= kRows || (packed && h.dtype() == compute_dtype(h.dtype())));
  }
};

// One place of a sequence: [batch, columns].
Tensor at_step(const Tensor& sequence, int64_t place) {
  const Dims& sizes = sequence.sizes();
  return make_view(sequence, {sizes[1], sizes[2]}, {sequence.strides()[1], sequence.strides()[2]},
                   place * sequence.strides()[0]);
}
// `count` places of a sequence, as rows of one matrix.
Tensor as_rows(const Tensor& sequence, int64_t first, int64_t count) {
  const int64_t batch = sequence.sizes()[1], columns = sequence.sizes()[2];
  return make_view(sequence, {count * batch, columns}, {columns, 1}, first * batch * columns);
}
Tensor all_rows(const Tensor& sequence) { return as_rows(sequence, 0, sequence.sizes()[0]); }

struct Inputs {
  const Tensor &x, &h0, &c0, &w_ih, &w_hh, &b_ih, &b_hh, &w_hr;
};

// Values of the forward that the backward needs, in the order of save.
struct States {
  Tensor gates;     // [steps, batch, gates * hidden]
  Tensor h;         // [steps + 1, batch, state]
  Tensor c;         // lstm: [steps + 1, batch, hidden], compute dtype
  Tensor products;  // gru: as gates
  Tensor inner;     // with a projection: [steps, batch, hidden], its input
};

// A product and a cell for each step, after the product of all inputs.
void run_step_by_step(const Plan& plan, const Inputs& in, const States& s) {
  KeptPacking packed_hh(in.w_hh), packed_hr(in.w_hr);
  const Tensor recurrent = transposed(in.w_hh), none;
  for (int64_t i = 0; i < plan.steps; ++i) {
    const Tensor gates = at_step(s.gates, plan.step(i));
    const Tensor h_before = at_step(s.h, plan.before(i)), h = at_step(s.h, plan.after(i));
    const Tensor products = s.products.defined() ? at_step(s.products, plan.step(i)) : Tensor();
    const Tensor inner = s.inner.defined() ? at_step(s.inner, plan.step(i)) : h;
    kernels::gemm({.a = h_before,
                   .b = recurrent,
                   .y = products.defined() ? products : gates,
                   .epilogue = {.bias = in.b_hh, .accumulate = !products.defined()},
                   .packing = packed_hh});
    kernels::rnn_cell_forward({.cell = plan.cell,
                               .gates = gates,
                               .h = inner,
                               .c = s.c.defined() ? at_step(s.c, plan.after(i)) : none,
                               .c_before = s.c.defined() ? at_step(s.c, plan.before(i)) : none,
                               .products = products,
                               .h_before = products.defined() ? h_before : none});
    if (s.inner.defined()) {
      kernels::gemm({.a = inner, .b = transposed(in.w_hr), .y = h, .packing = packed_hr});
    }
  }
}

// Runs all steps and returns the states.
States run_steps(const Plan& plan, const Inputs& in) {
  const Sizes& n = plan.n;
  const DType dtype = in.x.dtype();
  const Device device = in.x.device();
  States s;
  s.gates = empty({n.steps, n.batch, n.gates}, dtype, device);
  s.h = empty({n.steps + 1, n.batch, n.state}, dtype, device);
  if (in.w_hr.defined()) {
    s.inner = empty({n.steps, n.batch, n.hidden}, dtype, device);
  }
  kernels::copy({.x = in.h0, .y = at_step(s.h, plan.before(0))});
  if (plan.cell == RNNCell::lstm) {
    s.c = empty({n.steps + 1, n.batch, n.hidden}, compute_dtype(dtype), device);
    kernels::copy({.x = in.c0, .y = at_step(s.c, plan.before(0))});
  } else if (plan.cell == RNNCell::gru) {
    s.products = empty({n.steps, n.batch, n.gates}, dtype, device);
  }
  KeptPacking packed_ih(in.w_ih), packed_hh(in.w_hh);
  kernels::gemm({.a = all_rows(in.x),
                 .b = transposed(in.w_ih),
                 .y = all_rows(s.gates),
                 .epilogue = {.bias = in.b_ih},
                 .packing = packed_ih});
  if (plan.is_one_kernel(in.x, in.w_hr, n.steps, packed_hh != nullptr)) {
    kernels::cpu::rnn_sequence_forward({.cell = plan.cell,
                                        .order = plan,
                                        .gates = s.gates,
                                        .h = s.h,
                                        .c = s.c,
                                        .products = s.products,
                                        .weight = in.w_hh,
                                        .bias = in.b_hh,
                                        .packing = packed_hh});
  } else {
    run_step_by_step(plan, in, s);
  }
  return s;
}

// The gradients that the steps compute: for the gates, and for the states before the first step.
struct StepGradients {
  Tensor gates, products;  // sequences
  Tensor h, c;             // [batch, state], [batch, hidden]
  Tensor states;           // with a projection: [steps, batch, state], of h after each step
};

// The upstream gradients of the states.
Tensor upstream_of_states(const Plan& plan, const Tensor& like, std::span<const Tensor> dys) {
  const Sizes& n = plan.n;
  const int64_t last = plan.step(n.steps - 1);
  Tensor d = empty({n.steps, n.batch, n.state}, like.dtype(), like.device());
  dys[0].defined() ? kernels::copy({.x = dys[0], .y = d}) : kernels::fill({.y = d, .value = 0});
  if (dys[1].defined()) {
    const NoGradGuard guard;
    kernels::copy({.x = dys[0].defined() ? add(at_step(dys[0], last), dys[1]) : dys[1],
                   .y = at_step(d, last)});
  }
  return d;
}

StepGradients start_back(const Plan& plan, const States& s, std::span<const Tensor> dys) {
  const Sizes& n = plan.n;
  const DType dtype = s.h.dtype();
  const Device device = s.h.device();
  StepGradients d;
  d.gates = empty({n.steps, n.batch, n.gates}, dtype, device);
  d.h = empty({n.batch, n.state}, dtype, device);
  if (plan.cell == RNNCell::lstm) {
    d.c = empty({n.batch, n.hidden}, s.c.dtype(), device);
    dys[2].defined() ? kernels::copy({.x = dys[2], .y = d.c})
                     : kernels::fill({.y = d.c, .value = 0});
  } else if (plan.cell == RNNCell::gru) {
    d.products = empty({n.steps, n.batch, n.gates}, dtype, device);
  }
  if (s.inner.defined()) {
    d.states = upstream_of_states(plan, s.h, dys);
  } else if (dys[1].defined()) {
    kernels::copy({.x = dys[1], .y = d.h});
  }
  return d;
}

// All steps in one kernel; then the gradient of the start state.
void run_back_at_once(const Plan& plan, const States& s, const Tensor& w_hh, StepGradients& d,
                      std::span<const Tensor> dys) {
  kernels::cpu::rnn_sequence_backward({.cell = plan.cell,
                                       .order = plan,
                                       .gates = s.gates,
                                       .h = s.h,
                                       .c = s.c,
                                       .products = s.products,
                                       .weight = w_hh,
                                       .dh_out = dys[0],
                                       .dh_last = dys[1],
                                       .dgates = d.gates,
                                       .dproducts = d.products,
                                       .dc = d.c,
                                       .dh_before = d.h});
  const bool gru = d.products.defined();
  kernels::gemm({.a = at_step(gru ? d.products : d.gates, plan.step(0)),
                 .b = w_hh,
                 .y = d.h,
                 .epilogue = {.accumulate = gru}});
}

StepGradients run_back(const Plan& plan, const States& s, const Tensor& w_hh, const Tensor& w_hr,
                       std::span<const Tensor> dys) {
  StepGradients d = start_back(plan, s, dys);
  if (plan.is_one_kernel(s.h, w_hr, plan.n.steps - 1, false)) {
    run_back_at_once(plan, s, w_hh, d, dys);
    return d;
  }
  const bool lstm = s.c.defined(), gru = s.products.defined(), projected = s.inner.defined();
  const Tensor dinner =
      projected ? empty({plan.n.batch, plan.n.hidden}, s.h.dtype(), s.h.device()) : d.h;
  const Tensor none;
  for (int64_t i = plan.n.steps - 1; i >= 0; --i) {
    const int64_t step = plan.step(i);
    if (projected) {
      kernels::gemm({.a = at_step(d.states, step), .b = w_hr, .y = dinner});
    }
    const Tensor dgates = at_step(d.gates, step);
    const Tensor dproducts = gru ? at_step(d.products, step) : none;
    const bool first = i == plan.n.steps - 1 && !dys[1].defined() && !projected;
    kernels::rnn_cell_backward(
        {.cell = plan.cell,
         .gates = at_step(s.gates, step),
         .h = projected ? at_step(s.inner, step) : at_step(s.h, plan.after(i)),
         .c = lstm ? at_step(s.c, plan.after(i)) : none,
         .c_before = lstm ? at_step(s.c, plan.before(i)) : none,
         .products = gru ? at_step(s.products, step) : none,
         .h_before = gru ? at_step(s.h, plan.before(i)) : none,
         .dh_out = dys[0].defined() && !projected ? at_step(dys[0], step) : none,
         .dh_next = first ? none : dinner,
         .dgates = dgates,
         .dc = d.c,
         .dproducts = dproducts,
         .dh_before = gru ? d.h : none});
    const bool joins = projected && i > 0;  // what came to the state before from outside
    kernels::gemm({.a = gru ? dproducts : dgates,
                   .b = w_hh,
                   .y = joins ? at_step(d.states, plan.step(i - 1)) : d.h,
                   .epilogue = {.accumulate = gru || joins}});
  }
  return d;
}

void sum_rows(const Tensor& m, const Tensor& target) {
  if (target.defined()) {
    kernels::reduce_forward(
        {.op = kernels::Reduce::sum,
         .x = m,
         .y = make_view(target, {1, target.numel()}, {0, target.strides()[0]})});
  }
}

Grads backward_of(const Plan& plan, std::span<const Tensor> dys, Needs needs,
                  std::span<const Tensor> saved) {
  const Tensor &x = saved[0], &w_ih = saved[1], &w_hh = saved[2], &w_hr = saved[3];
  const States s{saved[4], saved[5], saved[6], saved[7], saved[8]};
  const StepGradients d = run_back(plan, s, w_hh, w_hr, dys);
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

Sizes check_inputs(const Op& op, RNNCell cell, const Inputs& in) {
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
  Sizes n{in.x.size(0),    in.x.size(1),           in.x.size(2), in.w_ih.size(0) / gates,
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
RecurrentOutput run(const Op& op, const Plan& plan, const Inputs& in) {
  const States s = run_steps(plan, in);
  const Sizes& n = plan.n;
  const auto last_of = [&](const Tensor& states) {
    Tensor last = empty({n.batch, states.sizes()[2]}, in.x.dtype(), in.x.device());
    kernels::copy({.x = at_step(states, plan.after(n.steps - 1)), .y = last});
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

RecurrentOutput recurrent(const Op& op, RNNCell cell, const Sequence& given,
                          const RecurrentWeights& weights, const RecurrentOptions& options) {
  auto [x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr] =
      op.enter(given.x, given.h0, given.c0, weights.weight_ih, weights.weight_hh, weights.bias_ih,
               weights.bias_hh, weights.weight_hr);
  check_floating(op.name, x);
  check(x.dim() == 3, op.name, ": got x of shape ", x.sizes(), ", expected three dimensions");
  const Tensor sequence = contiguous(options.batch_first ? transpose(x, 0, 1) : x);
  const Inputs in{sequence, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr};
  const Sizes sizes = check_inputs(op, cell, in);
  const Plan plan{{.reverse = options.reverse, .steps = sizes.steps}, cell, sizes};
  RecurrentOutput out = run(op, plan, in);
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
