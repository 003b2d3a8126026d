// Recurrent cells on the CPU: rows are independent and split over threads.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/rnn/rnn_cell.h>
#include <binade/kernels/rnn/rnn_cell_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 2048;

template <class Arguments>
RNNCellRows rows_of(const Arguments& a) {
  return {.cell = a.cell,
          .dtype = a.h.dtype,
          .first = 0,
          .rows = 0,
          .hidden = a.h.size(1),
          .gates = a.gates.data,
          .h = a.h.data,
          .c = a.c.data,
          .c_before = a.c_before.data,
          .products = a.products.data,
          .h_before = a.h_before.data};
}

int64_t row_grain(int64_t hidden) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, hidden));
}

}  // namespace

void cpu::rnn_cell_forward(const RNNCellForward& a) {
  check_arguments(a);
  const RNNCellRows all = rows_of(a);
  parallel_for(a.h.size(0), row_grain(all.hidden), [&](int64_t begin, int64_t end) {
    RNNCellRows rows = all;
    rows.first = begin;
    rows.rows = end - begin;
    rnn_cell_rows_best(rows);
  });
}

void cpu::rnn_cell_backward(const RNNCellBackward& a) {
  check_arguments(a);
  const RNNCellGradientRows all{.values = rows_of(a),
                                .dh_out = a.dh_out.data,
                                .dh_row = a.dh_out ? a.dh_out.strides[0] : 0,
                                .dh_column = a.dh_out ? a.dh_out.strides[1] : 0,
                                .dh_next = a.dh_next.data,
                                .dgates = a.dgates.data,
                                .dc = a.dc.data,
                                .dproducts = a.dproducts.data,
                                .dh_before = a.dh_before.data};
  parallel_for(a.h.size(0), row_grain(all.values.hidden), [&](int64_t begin, int64_t end) {
    RNNCellGradientRows rows = all;
    rows.values.first = begin;
    rows.values.rows = end - begin;
    rnn_cell_gradient_rows_best(rows);
  });
}

}  // namespace binade::kernels
