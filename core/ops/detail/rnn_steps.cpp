// A step is a product with the recurrent weights and a cell; on the CPU all steps may be one kernel
// (kernels/rnn/rnn_sequence.h).
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/rnn_steps_internal.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>

namespace binade::detail {
namespace {

// A product and a cell for each step, after the product of all inputs.
void run_step_by_step(const RecurrentPlan& plan, const RecurrentInputs& in,
                      const RecurrentStates& s) {
  KeptPacking packed_hh(in.w_hh), packed_hr(in.w_hr);
  const Tensor recurrent = transposed(in.w_hh);
  for (int64_t i = 0; i < plan.steps; ++i) {
    const int64_t rows = plan.rows_in(i, plan.n.batch);
    if (rows == 0 && plan.n.batch > 0) {
      break;
    }
    const auto rows_at = [rows](const Tensor& sequence, int64_t place) {
      return sequence.defined() ? at_step(sequence, place, 0, rows) : Tensor();
    };
    const Tensor gates = rows_at(s.gates, plan.step(i));
    const Tensor h_before = rows_at(s.h, plan.before(i)), h = rows_at(s.h, plan.after(i));
    const Tensor products = rows_at(s.products, plan.step(i));
    const Tensor inner = s.inner.defined() ? rows_at(s.inner, plan.step(i)) : h;
    kernels::gemm({.a = h_before,
                   .b = recurrent,
                   .y = products.defined() ? products : gates,
                   .epilogue = {.bias = in.b_hh, .accumulate = !products.defined()},
                   .packing = packed_hh});
    kernels::rnn_cell_forward({.cell = plan.cell,
                               .gates = gates,
                               .h = inner,
                               .c = rows_at(s.c, plan.after(i)),
                               .c_before = rows_at(s.c, plan.before(i)),
                               .products = products,
                               .h_before = products.defined() ? h_before : Tensor()});
    if (s.inner.defined()) {
      kernels::gemm({.a = inner, .b = transposed(in.w_hr), .y = h, .packing = packed_hr});
    }
  }
}

// The upstream gradients of the states.
Tensor upstream_of_states(const RecurrentPlan& plan, const Tensor& like,
                          std::span<const Tensor> dys) {
  const NoGradGuard guard;
  const RecurrentSizes& n = plan.n;
  const bool ragged = !plan.rows.empty();
  Tensor d = empty({n.steps, n.batch, n.state}, like.dtype(), like.device());
  dys[0].defined() && !ragged ? kernels::copy({.x = dys[0], .y = d})
                              : kernels::fill({.y = d, .value = 0});
  int64_t later = 0;
  for (int64_t i = n.steps - 1; i >= 0; --i) {
    const int64_t rows = plan.rows_in(i, n.batch), step = plan.step(i);
    if (dys[0].defined() && ragged && rows > 0) {
      kernels::copy({.x = at_step(dys[0], step, 0, rows), .y = at_step(d, step, 0, rows)});
    }
    if (dys[1].defined() && rows > later) {  // these rows end here
      const Tensor end = at_step(d, step, later, rows - later);
      kernels::copy({.x = add(end, narrow(dys[1], 0, later, rows - later)), .y = end});
    }
    later = rows;
  }
  return d;
}

void clear(const Tensor& x) {
  if (x.defined()) {
    kernels::fill({.y = x, .value = 0});
  }
}

RecurrentGradients start_back(const RecurrentPlan& plan, const RecurrentStates& s,
                              std::span<const Tensor> dys) {
  const RecurrentSizes& n = plan.n;
  const DType dtype = s.h.dtype();
  const Device device = s.h.device();
  RecurrentGradients d;
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
  if (!plan.rows.empty()) {
    clear(d.gates);
    clear(d.products);
    if (!dys[1].defined()) {
      clear(d.h);
    }
  }
  return d;
}

// All steps in one kernel; then the gradient of the start state.
void run_back_at_once(const RecurrentPlan& plan, const RecurrentStates& s, const Tensor& w_hh,
                      RecurrentGradients& d, std::span<const Tensor> dys) {
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

}  // namespace

bool RecurrentPlan::is_one_kernel(const Tensor& h, const Tensor& w_hr, int64_t products,
                                  bool packed) const {
  constexpr int64_t kRows = 8;  // with fewer rows packing takes longer than it saves
  return h.device().is_cpu() && !w_hr.defined() && kernels::cpu::rnn_sequence_runs(h.dtype()) &&
         (products * n.batch >= kRows || (packed && h.dtype() == compute_dtype(h.dtype())));
}

Tensor at_step(const Tensor& sequence, int64_t place) {
  return at_step(sequence, place, 0, sequence.sizes()[1]);
}

Tensor at_step(const Tensor& sequence, int64_t place, int64_t first, int64_t count) {
  const Dims& strides = sequence.strides();
  return make_view(sequence, {count, sequence.sizes()[2]}, {strides[1], strides[2]},
                   place * strides[0] + first * strides[1]);
}

Tensor as_rows(const Tensor& sequence, int64_t first, int64_t count) {
  const int64_t batch = sequence.sizes()[1], columns = sequence.sizes()[2];
  return make_view(sequence, {count * batch, columns}, {columns, 1}, first * batch * columns);
}

RecurrentStates run_recurrent(const RecurrentPlan& plan, const RecurrentInputs& in) {
  const RecurrentSizes& n = plan.n;
  const DType dtype = in.x.dtype();
  const Device device = in.x.device();
  RecurrentStates s;
  s.gates = empty({n.steps, n.batch, n.gates}, dtype, device);
  s.h = empty({n.steps + 1, n.batch, n.state}, dtype, device);
  if (in.w_hr.defined()) {
    s.inner = empty({n.steps, n.batch, n.hidden}, dtype, device);
  }
  if (!plan.rows.empty()) {
    clear(s.h);
    clear(s.inner);
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

RecurrentGradients run_recurrent_back(const RecurrentPlan& plan, const RecurrentStates& s,
                                      const Tensor& w_hh, const Tensor& w_hr,
                                      std::span<const Tensor> dys) {
  RecurrentGradients d = start_back(plan, s, dys);
  if (plan.is_one_kernel(s.h, w_hr, plan.n.steps - 1, false)) {
    run_back_at_once(plan, s, w_hh, d, dys);
    return d;
  }
  const bool gru = s.products.defined(), projected = s.inner.defined();
  const Tensor dinner =
      projected ? empty({plan.n.batch, plan.n.hidden}, s.h.dtype(), s.h.device()) : d.h;
  for (int64_t i = plan.n.steps - 1; i >= 0; --i) {
    const int64_t step = plan.step(i), rows = plan.rows_in(i, plan.n.batch);
    if (rows == 0 && plan.n.batch > 0) {
      continue;
    }
    const auto rows_at = [rows](const Tensor& sequence, int64_t place) {
      return sequence.defined() ? at_step(sequence, place, 0, rows) : Tensor();
    };
    const auto rows_of = [rows](const Tensor& matrix) {
      return matrix.defined() ? make_view(matrix, {rows, matrix.sizes()[1]}, matrix.strides())
                              : Tensor();
    };
    const Tensor dh = rows_of(d.h), dh_inner = projected ? rows_of(dinner) : dh;
    if (projected) {
      kernels::gemm({.a = rows_at(d.states, step), .b = w_hr, .y = dh_inner});
    }
    const Tensor dgates = rows_at(d.gates, step), dproducts = rows_at(d.products, step);
    const bool nothing_later =
        i == plan.n.steps - 1 && !dys[1].defined() && !projected && plan.rows.empty();
    kernels::rnn_cell_backward(
        {.cell = plan.cell,
         .gates = rows_at(s.gates, step),
         .h = projected ? rows_at(s.inner, step) : rows_at(s.h, plan.after(i)),
         .c = rows_at(s.c, plan.after(i)),
         .c_before = rows_at(s.c, plan.before(i)),
         .products = rows_at(s.products, step),
         .h_before = gru ? rows_at(s.h, plan.before(i)) : Tensor(),
         .dh_out = projected ? Tensor() : rows_at(dys[0], step),
         .dh_next = nothing_later ? Tensor() : dh_inner,
         .dgates = dgates,
         .dc = rows_of(d.c),
         .dproducts = dproducts,
         .dh_before = gru ? dh : Tensor()});
    const bool joins = projected && i > 0;  // what came to the state before from outside
    kernels::gemm({.a = gru ? dproducts : dgates,
                   .b = w_hh,
                   .y = joins ? rows_at(d.states, plan.step(i - 1)) : dh,
                   .epilogue = {.accumulate = gru || joins}});
  }
  return d;
}

}  // namespace binade::detail
