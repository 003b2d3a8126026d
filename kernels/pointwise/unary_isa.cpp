// Unary operations over tiles: one loop per functor and compute type.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/pointwise/pointwise_functors.h>
#include <binade/kernels/pointwise/pointwise_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// In place is fine for a vectorised loop (element i depends on element i only), hence ivdep.
template <class C, class Functor>
void forward_loop(C* y, const C* x, const C*, const C*, int64_t n, MapScalars<C> scalars) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = Functor::forward(x[i], scalars.alpha, scalars.beta);
  }
}

template <class C, class Functor>
void backward_loop(C* dx, const C* saved, const C* dy, const C*, int64_t n, MapScalars<C> scalars) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    dx[i] = Functor::backward(saved[i], dy[i], scalars.alpha, scalars.beta);
  }
}

template <class Functor>
void slope_loop(float* y, const float* x, float* slope, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float at = x[i];
    y[i] = Functor::forward(at, 0.0f, 0.0f);
    slope[i] = Functor::backward(at, 1.0f, 0.0f, 0.0f);
  }
}

template <class C>
struct Loops {
#define BINADE_ENTRY(name, Functor, ...) forward_loop<C, functor::Functor>,
  static constexpr MapLoop<C> kForward[] = {BINADE_UNARY_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
#define BINADE_ENTRY(name, Functor, ...) backward_loop<C, functor::Functor>,
  static constexpr MapLoop<C> kBackward[] = {BINADE_UNARY_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
};

}  // namespace

void unary_forward_tile(Unary op, DType dtype, double alpha, double beta, const StridedTile& tile) {
  const int i = static_cast<int>(op);
  map_floating_tile(dtype, {Loops<float>::kForward[i], Loops<double>::kForward[i]}, 1, tile,
                    {alpha, beta});
}

void unary_slope_tile(Unary op, const StridedTile& tile) {
  const auto loop = op == Unary::gelu ? slope_loop<functor::Gelu> : slope_loop<functor::GeluTanh>;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const auto at = [&](int k) { return tile.data[k] + row * tile.outer[k]; };
    loop(reinterpret_cast<float*>(at(0)), reinterpret_cast<const float*>(at(1)),
         reinterpret_cast<float*>(at(2)), tile.n);
  }
}

void unary_backward_tile(Unary op, DType dtype, double alpha, double beta,
                         const StridedTile& tile) {
  const int i = static_cast<int>(op);
  map_floating_tile(dtype, {Loops<float>::kBackward[i], Loops<double>::kBackward[i]}, 2, tile,
                    {alpha, beta});
}

}  // namespace binade::kernels::BINADE_ISA
