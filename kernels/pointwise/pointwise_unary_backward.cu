// Gradients of CUDA unary operations: dx = dy f'(x) as a map (cuda/map.cuh). One kernel per
// operation and dtype with 16 bytes a thread for f32, f16 and bf16; for f64, which is for
// reference, one kernel that switches over the operations.
#include <binade/kernels/pointwise/pointwise_functors.h>
#include <binade/kernels/pointwise/pointwise_internal.h>
#include <binade/kernels/pointwise/unary_unroll_internal.h>
#include <binade/kernels/cuda/map.cuh>

namespace binade::kernels {
namespace {

template <class Functor, class T>
struct Backward {
  float alpha, beta;
  __device__ T operator()(T saved, T dy) const {
    return static_cast<T>(
        Functor::backward(static_cast<float>(saved), static_cast<float>(dy), alpha, beta));
  }
};

struct BackwardDouble {
  Unary op;
  double alpha, beta;
  __device__ double operator()(double saved, double dy) const {
    switch (op) {
#define BINADE_CASE(name, Functor, ...) \
  case Unary::name: return functor::Functor::backward(saved, dy, alpha, beta);
      BINADE_UNARY_OPS(BINADE_CASE)
#undef BINADE_CASE
    }
    return dy;
  }
};

template <class T>
void backward(Unary op, const StridedLoop& loop, float alpha, float beta) {
  switch (op) {
#define BINADE_CASE(name, Functor, ...)                                \
  case Unary::name:                                                    \
    return map<T, T, 2, dev::kVectorOf<T>, unary_unroll(Unary::name)>( \
        "unary_backward_" #name "_kernel", loop, Backward<functor::Functor, T>{alpha, beta});
    BINADE_UNARY_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
}

}  // namespace

void cuda::unary_backward(const UnaryBackward& a) {
  check_arguments(a);
  const Unary op = simplified(a.op, a.alpha);
  const StridedLoop loop("unary_backward", {&a.dx, &a.saved, &a.dy});
  dispatch_floating("unary_backward", a.dx.dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, double>) {
      map<T, T, 2, 1, 1>("unary_backward_kernel", loop, BackwardDouble{op, a.alpha, a.beta});
    } else {
      backward<T>(op, loop, static_cast<float>(a.alpha), static_cast<float>(a.beta));
    }
  });
}

}  // namespace binade::kernels
