// The five transforms of kernels/conv/winograd_internal.h in one dimension, on vectors of channels.
// Included by
// *_isa.cpp files only.
#pragma once
#include <binade/kernels/gemm/contraction_vector_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

using V = Vector<float>;

constexpr float kA = 0.625f, kB = 1.5f;  // the points are 0, +-a, +-b and infinity
constexpr float kA2 = kA * kA, kB2 = kB * kB;
// 1 / prod (p - q) at 0, at +-a and at +-b; at infinity it is 1.
constexpr double kA2d = kA2, kB2d = kB2;
constexpr float kScale0 = static_cast<float>(1 / (kA2d * kB2d));
constexpr float kScaleA = static_cast<float>(1 / (2 * kA2d * (kA2d - kB2d)));
constexpr float kScaleB = static_cast<float>(1 / (2 * kB2d * (kB2d - kA2d)));
constexpr float kScaleAa = static_cast<float>(kA / (2 * kA2d * (kA2d - kB2d)));
constexpr float kScaleBb = static_cast<float>(kB / (2 * kB2d * (kB2d - kA2d)));
constexpr float kScaleAa2 = static_cast<float>(1 / (2 * (kA2d - kB2d)));
constexpr float kScaleBb2 = static_cast<float>(1 / (2 * (kB2d - kA2d)));

struct Input {  // B^T
  static constexpr int kFrom = 6, kTo = 6;
  BINADE_INLINE static void apply(const V (&d)[6], V (&t)[6]) {
    const V a_even = d[4] - kB2 * d[2], a_odd = kA * (d[3] - kB2 * d[1]);
    const V b_even = d[4] - kA2 * d[2], b_odd = kB * (d[3] - kA2 * d[1]);
    t[0] = kA2 * kB2 * d[0] + (d[4] - (kA2 + kB2) * d[2]);
    t[1] = a_even + a_odd;
    t[2] = a_even - a_odd;
    t[3] = b_even + b_odd;
    t[4] = b_even - b_odd;
    t[5] = kA2 * kB2 * d[1] + (d[5] - (kA2 + kB2) * d[3]);
  }
};

struct Output {  // A^T
  static constexpr int kFrom = 6, kTo = 4;
  BINADE_INLINE static void apply(const V (&m)[6], V (&y)[4]) {
    const V a_even = m[1] + m[2], a_odd = m[1] - m[2], b_even = m[3] + m[4], b_odd = m[3] - m[4];
    y[0] = m[0] + (a_even + b_even);
    y[1] = kB * b_odd + kA * a_odd;
    y[2] = kB2 * b_even + kA2 * a_even;
    y[3] = kB * kB2 * b_odd + (kA * kA2 * a_odd + m[5]);
  }
};

struct OutputGradient {  // A
  static constexpr int kFrom = 4, kTo = 6;
  BINADE_INLINE static void apply(const V (&y)[4], V (&z)[6]) {
    const V a_even = kA2 * y[2] + y[0], a_odd = kA * kA2 * y[3] + kA * y[1];
    const V b_even = kB2 * y[2] + y[0], b_odd = kB * kB2 * y[3] + kB * y[1];
    z[0] = y[0];
    z[1] = a_even + a_odd;
    z[2] = a_even - a_odd;
    z[3] = b_even + b_odd;
    z[4] = b_even - b_odd;
    z[5] = y[3];
  }
};

struct Weight {  // G
  static constexpr int kFrom = 3, kTo = 6;
  BINADE_INLINE static void apply(const V (&g)[3], V (&u)[6]) {
    const V a_even = kScaleAa2 * g[2] + kScaleA * g[0], a_odd = kScaleAa * g[1];
    const V b_even = kScaleBb2 * g[2] + kScaleB * g[0], b_odd = kScaleBb * g[1];
    u[0] = kScale0 * g[0];
    u[1] = a_even + a_odd;
    u[2] = a_even - a_odd;
    u[3] = b_even + b_odd;
    u[4] = b_even - b_odd;
    u[5] = g[2];
  }
};

struct WeightGradient {  // G^T
  static constexpr int kFrom = 6, kTo = 3;
  BINADE_INLINE static void apply(const V (&u)[6], V (&g)[3]) {
    const V a_even = u[1] + u[2], a_odd = u[1] - u[2], b_even = u[3] + u[4], b_odd = u[3] - u[4];
    g[0] = kScale0 * u[0] + (kScaleA * a_even + kScaleB * b_even);
    g[1] = kScaleAa * a_odd + kScaleBb * b_odd;
    g[2] = kScaleAa2 * a_even + (kScaleBb2 * b_even + u[5]);
  }
};

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
