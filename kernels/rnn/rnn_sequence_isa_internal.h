// One step of a recurrent layer for one panel of hidden units and some rows of the batch: the
// product with the recurrent weights and the cell. C is the type of the compute dtype.
//
// A panel holds the weights of adjacent hidden units as [k][gates][units] (forward; the last panel
// may have fewer units than the others and has no padding) or [k][units] (backward). Tiles read up
// to two vectors beyond its end.
#pragma once
#include <binade/kernels/rnn/rnn_cell_isa_internal.h>

namespace binade::kernels {

struct RNNStepPanel {
  const void* a = nullptr;  // C [batch][k], rows a_row apart; null: there is no product
  int64_t a_row = 0, k = 0;
  const void* weight = nullptr;  // C
  int64_t unit = 0, units = 0;   // the first hidden unit, and how many
};

// a is the state before the step.
struct RNNStep {
  RNNCellRows cell;
  RNNStepPanel panel;
  const void* bias;  // C [gates * hidden] or null
};

// a is the gradient of the gates (gru: of the products) in the step after this one. dh = dh_out +
// (product + dh_next), where dh_next, like dh_before, has the compute dtype.
struct RNNStepGradient {
  RNNCellGradientRows cell;
  RNNStepPanel panel;
  void* next_a;  // written: a of the step before this one
};

// Hidden units of a panel for f32 and f64.
struct RNNPanelUnits {
  int64_t f32 = 0, f64 = 0;
};

BINADE_ISA_KERNEL(rnn_panel_units, bool forward, RNNCell cell, RNNPanelUnits& units)
BINADE_ISA_KERNEL(rnn_step, const RNNStep& s)
BINADE_ISA_KERNEL(rnn_step_gradient, const RNNStepGradient& s)

}  // namespace binade::kernels
