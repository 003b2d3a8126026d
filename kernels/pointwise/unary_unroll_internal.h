// Elements that a unary map has in flight a thread where it cannot take vectors (cuda/map.cuh).
#pragma once
#include <binade/kernels/pointwise/pointwise.h>

namespace binade::kernels {

// Functions of much code would take the registers, and most of the compiler's time, for more copies
// of it; strided elements cost a sector each, of which two a thread fill a GPU's memory queues.
constexpr int unary_unroll(Unary op) {
  switch (op) {
    case Unary::sin:
    case Unary::cos:
    case Unary::tanh:
    case Unary::gelu:
    case Unary::gelu_tanh:
    case Unary::silu:
    case Unary::softplus:
    case Unary::elu:
    case Unary::pow_scalar:
    case Unary::expm1:
    case Unary::log1p:
    case Unary::erf:
    case Unary::mish:
    case Unary::log_sigmoid: return 2;
    default: return 4;
  }
}

}  // namespace binade::kernels
