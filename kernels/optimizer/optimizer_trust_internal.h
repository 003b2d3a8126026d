// The rules of LAMB and LARS, for every backend.
#pragma once
#include <binade/kernels/optimizer/optimizer_trust.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

// For a step whose scalars come as arguments.
RangeScalars step_scalars_of(const LAMBStep& a);
RangeScalars step_scalars_of(const LARSStep& a);

struct TrustChunk {  // a row of the chunks
  int64_t begin, count, item;
};
struct TrustItem {  // a row of the items
  int64_t first, last;
};

// Sums of squares of a parameter, and of its direction (LAMB) or gradient (LARS).
struct TrustSums {
  double p, r;
};

// The coefficients of a parameter's ratio; trust_coefficient 0 means LAMB.
struct TrustRule {
  double trust_coefficient = 0, weight_decay = 0, eps = 0;
};
BINADE_HD inline double trust_ratio(const TrustRule& rule, const TrustSums& sums) {
  const double p = std::sqrt(sums.p), r = std::sqrt(sums.r);
  if (!(p > 0 && r > 0)) {
    return 1;
  }
  return rule.trust_coefficient == 0
             ? p / r
             : rule.trust_coefficient * p / (r + rule.weight_decay * p + rule.eps);
}
inline TrustRule rule_of(const LAMBStep&) { return {}; }
inline TrustRule rule_of(const LARSStep& a) { return {a.trust_coefficient, a.weight_decay, a.eps}; }

}  // namespace binade::kernels
