// Compares results with references: all tolerances of the op table.
#pragma once
#include <string>

#include <tests/op_table/sample.h>

namespace binade::op_table {

// One line about the first wrong element, or an empty text.
std::string mismatch(const OpRow& row, const Sample& sample, const Tensor& got,
                     const Array& expected);

// |got - expected| <= 8 eps sqrt(terms) max|expected| in f32 and f64, 8 (eps + eps(f32)
// sqrt(terms)) max|expected| in f16 and bf16: the law of the parity cases. `least` bounds
// max|expected| from below.
double sum_tolerance(DType dtype, double terms, double largest);

// The smallest positive value: results below the normal range are rounded to multiples of it.
double smallest_step(DType dtype);

double largest_magnitude(const Array& x);

// True if got equals expected within the tolerance; equal infinities and NaN match.
bool close(double got, double expected, double tolerance);

// True if the op's name, or the name of its family, is in the error's text before the colon.
bool names_op(const Error& error, const OpRow& row);

}  // namespace binade::op_table
