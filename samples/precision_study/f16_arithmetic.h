// Arithmetic that rounds every result to f16, for comparison. Binade's kernels do not compute like
// this.
#pragma once
#include <binade/kernels/base/half.h>

#include <cmath>

namespace study {

using binade::half;

inline half add(half a, half b) { return half(static_cast<float>(a) + static_cast<float>(b)); }
inline half sub(half a, half b) { return half(static_cast<float>(a) - static_cast<float>(b)); }
inline half mul(half a, half b) { return half(static_cast<float>(a) * static_cast<float>(b)); }
inline half div(half a, half b) { return half(static_cast<float>(a) / static_cast<float>(b)); }
inline half exp(half a) { return half(std::exp(static_cast<float>(a))); }
inline half sqrt(half a) { return half(std::sqrt(static_cast<float>(a))); }

}  // namespace study
