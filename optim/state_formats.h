// Optimizer states in another number format, simulated: after a step the moments take the values
// that they would have if they were stored in it (core/precision/format_scheme.h).
#pragma once
#include <binade/core/precision/format_scheme.h>
#include <binade/optim/optimizer.h>

namespace binade::optim {

// Rounds all moments in place; masters and compensations stay. Blocks lie along the last dimension
// of a parameter. Stochastic rounding draws from generator(). Delayed scales and sharded states are
// an error.
void round_states(const Optimizer& optimizer, const FormatScheme& scheme);

}  // namespace binade::optim
