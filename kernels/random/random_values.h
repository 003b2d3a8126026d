// Values from Philox numbers, on the host and on the device. Uniform values have the same bits
// everywhere; normal values are within the accuracy of math_log. In an anonymous namespace because
// each instruction set compiles its own copy (kernels/base/isa.h).
#pragma once
#include <binade/kernels/base/pointwise_math.h>

namespace binade::kernels {
namespace {

// In [0, 1), 24 bits.
BINADE_HD inline float uniform_value(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24f;
}

// cos and sin of 2 pi u, 0 <= u < 1: reduced to an eighth of a turn, then Taylor polynomials.
struct Turn {
  float cosine, sine;
};
BINADE_HD inline Turn turn(float u) {
  const int32_t quadrant = static_cast<int32_t>(u * 4.0f + 0.5f);
  const float r = (u - static_cast<float>(quadrant) * 0.25f) * 6.28318531f;  // exact difference
  const float s = r * r;
  const float sine =
      r +
      r * s * (-1.66666667e-1f + s * (8.33333333e-3f + s * (-1.98412698e-4f + s * 2.75573192e-6f)));
  const float cosine =
      1.0f + s * (-0.5f + s * (4.16666667e-2f + s * (-1.38888889e-3f + s * 2.48015873e-5f)));
  const bool odd = quadrant & 1;
  const float c = odd ? sine : cosine, d = odd ? cosine : sine;
  return {(quadrant + 1) & 2 ? -c : c, quadrant & 2 ? -d : d};
}

// Two normal values from a pair of numbers (Box-Muller).
struct NormalPair {
  float first, second;
};
BINADE_HD inline NormalPair normal_pair(uint32_t bits0, uint32_t bits1) {
  const float u = static_cast<float>(static_cast<int32_t>((bits0 >> 8) + 1)) * 0x1p-24f;
  const float radius = math_sqrt(-2.0f * math_log(u));
  const Turn t = turn(uniform_value(bits1));
  return {radius * t.cosine, radius * t.sine};
}

}  // namespace
}  // namespace binade::kernels
