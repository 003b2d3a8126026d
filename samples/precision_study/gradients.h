// The share of counted gradients (core/observe/exponents.h) that f16 cannot represent.
#pragma once
#include "report.h"
#include "training.h"

namespace study {

double zeros_of(const ExponentCounts& counts);  // share of all
// Shares of the gradients that are not zero.
double below(const ExponentCounts& counts, int exponent);      // magnitudes below 2^exponent
double flushed(const ExponentCounts& counts, double scale);    // times `scale` zero in f16
double overflown(const ExponentCounts& counts, double scale);  // times `scale` infinite in f16
// The share of all values with each exponent (floor of the binary logarithm), zeros apart.
Series histogram(const ExponentCounts& counts, const std::string& name);

}  // namespace study
