// Unary operations over tiles: one loop per functor and compute type.
#include <binade/kernels/base/blocks.h>
#include <binade/kernels/pointwise_functors.h>
#include <binade/kernels/pointwise_isa.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// In place is fine for a vectorised loop (element i depends on element i only), hence ivdep.
template <class C, class Functor>
void forward_loop(C* y, const C* x, const C*, const C*, int64_t n, C alpha, C beta) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = Functor::forward(x[i], alpha, beta);
  }
}

template <class C, class Functor>
void backward_loop(C* dx, const C* saved, const C* dy, const C*, int64_t n, C alpha, C beta) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    dx[i] = Functor::backward(saved[i], dy[i], alpha, beta);
  }
}

template <class C>
struct Loops {
#define BINADE_ENTRY(name, Functor, saved) forward_loop<C, functor::Functor>,
  static constexpr MapLoop<C> kForward[] = {BINADE_UNARY_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
#define BINADE_ENTRY(name, Functor, saved) backward_loop<C, functor::Functor>,
  static constexpr MapLoop<C> kBackward[] = {BINADE_UNARY_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
};

}  // namespace

void unary_forward_tile(Unary op, DType dtype, double alpha, double beta, const StridedTile& tile) {
  const int i = static_cast<int>(op);
  map_floating_tile(dtype, Loops<float>::kForward[i], Loops<double>::kForward[i], 1, tile, alpha,
                    beta);
}

void unary_backward_tile(Unary op, DType dtype, double alpha, double beta,
                         const StridedTile& tile) {
  const int i = static_cast<int>(op);
  map_floating_tile(dtype, Loops<float>::kBackward[i], Loops<double>::kBackward[i], 2, tile, alpha,
                    beta);
}

}  // namespace binade::kernels::BINADE_ISA
