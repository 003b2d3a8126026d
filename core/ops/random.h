// Ops that draw by probabilities. They take their numbers from generator() (core/tensor/create.h):
// one range of the thread's Philox sequence per call, whose length depends on the number of
// elements only, so a seed gives the same results on every device and at any thread count. No
// gradient.
//
// rand, randn, randint and randperm, which draw without a tensor, are in core/tensor/create.h;
// dropout is in core/ops/unary.h.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// 1 with probability p, else 0: y has p's sizes and floating dtype. p must be in [0, 1], else a
// ValueError, which a device reports at the next synchronisation. Element i uses number i.
Tensor bernoulli(const Tensor& p);

// Indices (i64 [samples] or [rows, samples]) drawn from classes with weights p, floating [classes]
// or [rows, classes]. The weights of a row need not add to 1; they must be finite, not negative and
// not all 0. Without replacement the indices of a row differ, in the order of the draws, and a row
// needs at least `samples` weights above 0. A draw, or without replacement a class, uses two
// numbers, which make 48 bits. On a device the host waits for the check of p.
Tensor multinomial(const Tensor& p, int64_t samples, bool replacement = false);

}  // namespace binade
