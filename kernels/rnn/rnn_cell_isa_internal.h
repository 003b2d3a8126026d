// Rows of recurrent cells: `rows` rows of `hidden` elements in contiguous arrays of a dtype (c and
// dc in its compute dtype); rnn_cell.h says which arrays a cell has.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/rnn/rnn_cell.h>

namespace binade::kernels {

struct RNNCellRows {
  RNNCell cell;
  DType dtype;
  int64_t first, rows, hidden;
  void* gates;
  void* h;
  void* c;
  const void* c_before;
  const void* products;
  const void* h_before;
};

struct RNNCellGradientRows {
  RNNCellRows values;
  const void* dh_out;
  int64_t dh_row, dh_column;  // strides of dh_out in elements
  const void* dh_next;
  void* dgates;
  void* dc;
  void* dproducts;
  void* dh_before;
};

BINADE_ISA_KERNEL(rnn_cell_rows, const RNNCellRows& a)
BINADE_ISA_KERNEL(rnn_cell_gradient_rows, const RNNCellGradientRows& a)

}  // namespace binade::kernels
