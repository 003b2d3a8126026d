// Comparing results with references: the tolerances of the op table in one place.
#pragma once
#include <string>

#include <tests/op_table/sample.h>

namespace binade::op_table {

// One line about the first element that is off, or nothing.
std::string mismatch(const OpRow& row, const Sample& sample, const Tensor& got,
                     const Array& expected);

// |got - expected| <= 8 eps sqrt(terms) max|expected| in f32 and f64, 8 (eps + eps(f32)
// sqrt(terms)) max|expected| in f16 and bf16: the law of the parity cases. `least` bounds
// max|expected| from below.
double sum_tolerance(DType dtype, double terms, double largest);

// The smallest positive value: what results below the normal range are rounded to.
double smallest_step(DType dtype);

double largest_magnitude(const Array& x);

// Whether got is expected within the tolerance; equal infinities and NaN match.
bool close(double got, double expected, double tolerance);

// Whether the op's name is (or the name of its family) in the error's first words, before the
// colon.
bool names_op(const Error& error, const OpRow& row);

}  // namespace binade::op_table
