// Checks that the optimizer kernels share, and the numbers of a step that come as arguments.
#pragma once
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

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
