// The built-in cases and what they share.
#pragma once
#include <binade/lab/cases/case.h>

namespace binade::lab {

Case softmax_case();
Case layer_norm_case();
Case gemm_case();
Case attention_case();
Case reduce_case();
Case scan_case();
Case histogram_case();
Case transpose_case();
Case elementwise_case();
Case stencil_case();

// A random generator that gives the same numbers on every machine.
class CaseRandom {
 public:
  explicit CaseRandom(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x7f4a7c15u) {}
  uint64_t bits() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

// Fills an array for an input set: "normal" is uniform in (-range, range), "large" is uniform with
// the range times `large`, "equal" is all 2, "nan" is normal with one NaN in the middle, "-inf" is
// normal with a third -infinity, but never in the first of each `row` elements.
struct FillOptions {
  double range = 2, large = 1e3;
  int64_t row = 1;
};
void fill_array(Array& array, const std::string& set, CaseRandom& random, FillOptions options = {});
// The smallest normal float: smaller results may become 0.
inline constexpr double kTiny = 0x1p-126;

}  // namespace binade::lab
