// Gradients of CUDA binary operations as maps (cuda/map.cuh): one kernel per operation, dtype and
// operand, 16 bytes a thread. Operands that the gradient does not depend on are not loaded.
#include <binade/kernels/pointwise/binary_functors.h>
#include <binade/kernels/pointwise/pointwise_internal.h>
#include <binade/kernels/cuda/map.cuh>

namespace binade::kernels {
namespace {

template <class Functor, class T, bool kOfA>
struct Backward {
  __device__ T operator()(T a, T b, T dy) const {
    const auto x = static_cast<Compute<T>>(a), z = static_cast<Compute<T>>(b);
    if constexpr (kOfA) {
      return static_cast<T>(Functor::backward_a(x, z, static_cast<Compute<T>>(dy)));
    } else {
      return static_cast<T>(Functor::backward_b(x, z, static_cast<Compute<T>>(dy)));
    }
  }
};

template <class T, bool kOfA>
void backward(Binary op, const StridedLoop& loop) {
  // f64 is for reference; one element at a time keeps its pow within the registers.
  constexpr int kVector = sizeof(T) == 8 ? 1 : dev::kVectorOf<T>, kUnroll = sizeof(T) == 8 ? 1 : 4;
  switch (op) {
#define BINADE_CASE(name, Functor, ...)                                             \
  case Binary::name:                                                                \
    return map<T, T, 3, kVector, kUnroll>("binary_backward_" #name "_kernel", loop, \
                                          Backward<functor::Functor, T, kOfA>{});
    BINADE_BINARY_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
}

}  // namespace

void cuda::binary_backward(const BinaryBackward& a) {
  const BinarySaved saved = checked_operands(a);
  const auto gradient = [&]<bool kOfA>(const View& out, std::bool_constant<kOfA>) {
    if (!out) {
      return;
    }
    const StridedLoop loop("binary_backward", {&out, &saved.a, &saved.b, &a.dy});
    dispatch_floating("binary_backward", a.dy.dtype,
                      [&]<class T>(Type<T>) { backward<T, kOfA>(a.op, loop); });
  };
  gradient(a.da, std::true_type());
  gradient(a.db, std::false_type());
}

}  // namespace binade::kernels
