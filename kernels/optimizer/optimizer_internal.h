// Checks that the optimizer kernels share, and the scalars of a step computed from its arguments.
#pragma once
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

// Checks for a contiguous vector of this dtype and of param's length.
void check_flat(const char* op, const char* name, const View& view, const View& like, DType dtype);
// Checks the arguments that every step has.
void check_step(const char* op, const View& param, const View& master, const View& grad,
                const View& step_scalars);
// Checks for a contiguous f64 vector of this length.
void check_step_scalars(const char* op, const char* name, const View& view, int64_t length);
void check_flat_gradient(const char* op, const View& grad);

// For a step whose scalars come as arguments.
RangeScalars step_scalars_of(const SGDStep& a);
RangeScalars step_scalars_of(const AdamStep& a);

}  // namespace binade::kernels
