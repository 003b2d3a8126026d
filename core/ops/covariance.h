// Covariances and correlations of variables. As reductions they are computed in f32 (f64 for f64)
// and rounded once.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

struct CovOptions {
  int64_t correction = 1;  // 1: unbiased; 0: divides by the number of observations
  Tensor fweights = {};    // how often each observation counts: integers of at least 0, [n]
  Tensor aweights = {};    // their relative importance: numbers of at least 0, [n], floating
};
// The covariance matrix [v, v] of the rows of x [v, n]: v variables, n observations. Of one
// variable (v = 1, or x [n]) the variance, a scalar. The host waits for a device to check weights.
// As torch.cov and numpy.cov.
Tensor cov(const Tensor& x, const CovOptions& options = {});

// The correlation coefficients, cov(x)_ij / sqrt(cov(x)_ii cov(x)_jj), between -1 and 1. NaN for a
// variable that does not change.
Tensor corrcoef(const Tensor& x);

}  // namespace binade
