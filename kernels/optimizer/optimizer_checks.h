// Argument checks of the optimizer kernels, and the numbers of a step that come as arguments; for
// every device.
#pragma once
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

void check_gradient_stats(const GradientStats& a);
void check_sgd_step(const SgdStep& a);
void check_adam_step(const AdamStep& a);

// A contiguous vector of this dtype and of param's length.
void check_flat(const char* op, const char* name, const View& view, const View& like, DType dtype);
// What every step has.
void check_step(const char* op, const View& param, const View& master, const View& grad,
                const View& words);
// A contiguous f64 vector of this length.
void check_words(const char* op, const char* name, const View& view, int64_t length);
void check_flat_gradient(const char* op, const View& grad);

// Of a step without words.
StretchWords words_of(const SgdStep& a);
StretchWords words_of(const AdamStep& a);

}  // namespace binade::kernels
