// CUDA unary operations: y = f(x) as a map (cuda/map.cuh). One kernel per operation and dtype with
// 16 bytes a thread for f32, f16 and bf16; for f64, which is for reference, one kernel that
// switches over the operations.
#include <binade/kernels/pointwise/pointwise_functors.h>
#include <binade/kernels/pointwise/pointwise_internal.h>
#include <binade/kernels/pointwise/unary_unroll_internal.h>
#include <binade/kernels/cuda/map.cuh>

namespace binade::kernels {
namespace {

template <class Functor, class T>
struct Forward {
  float alpha, beta;
  __device__ T operator()(T x) const {
    return static_cast<T>(Functor::forward(static_cast<float>(x), alpha, beta));
  }
};

struct ForwardDouble {
  Unary op;
  double alpha, beta;
  __device__ double operator()(double x) const {
    switch (op) {
#define BINADE_CASE(name, Functor, ...) \
  case Unary::name: return functor::Functor::forward(x, alpha, beta);
      BINADE_UNARY_OPS(BINADE_CASE)
#undef BINADE_CASE
    }
    return x;
  }
};

template <class T>
void forward(Unary op, const StridedLoop& loop, float alpha, float beta) {
  switch (op) {
#define BINADE_CASE(name, Functor, ...)                                \
  case Unary::name:                                                    \
    return map<T, T, 1, dev::kVectorOf<T>, unary_unroll(Unary::name)>( \
        "unary_forward_" #name "_kernel", loop, Forward<functor::Functor, T>{alpha, beta});
    BINADE_UNARY_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
}

}  // namespace

void cuda::unary_forward(const UnaryForward& a) {
  check_arguments(a);
  const Unary op = simplified(a.op, a.alpha);
  const StridedLoop loop("unary_forward", {&a.y, &a.x});
  dispatch_floating("unary_forward", a.y.dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, double>) {
      map<T, T, 1, 1, 1>("unary_forward_kernel", loop, ForwardDouble{op, a.alpha, a.beta});
    } else {
      forward<T>(op, loop, static_cast<float>(a.alpha), static_cast<float>(a.beta));
    }
  });
}

}  // namespace binade::kernels
