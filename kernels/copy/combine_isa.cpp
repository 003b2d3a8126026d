// One hop of a reduction in blocks: load both operands in the compute type, combine, store.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/copy/combine_isa_internal.h>
#include <binade/kernels/pointwise/binary_functors.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C, class Functor, bool kDivide>
void combine_loop(C* y, const C* received, const C* x, int64_t n, C before, C after) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = kDivide ? Functor::forward(received[i], x[i] / before) / after
                   : Functor::forward(received[i], x[i]);
  }
}

template <class C>
void scale_loop(C* y, const C*, const C* x, int64_t n, C before, C after) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i] / before / after;
  }
}

template <class C>
using Loop = void (*)(C* y, const C* received, const C* x, int64_t n, C before, C after);

template <class C>
Loop<C> loop_of(const CombineTile& a, bool received) {
  if (!received) {
    return scale_loop<C>;
  }
  if (a.before != 1 || a.after != 1) {
    return a.op == CombineOp::sum   ? combine_loop<C, functor::Add, true>
           : a.op == CombineOp::max ? combine_loop<C, functor::Maximum, true>
                                    : combine_loop<C, functor::Minimum, true>;
  }
  return a.op == CombineOp::sum   ? combine_loop<C, functor::Add, false>
         : a.op == CombineOp::max ? combine_loop<C, functor::Maximum, false>
                                  : combine_loop<C, functor::Minimum, false>;
}

// For storage T; received and y may be of the compute type instead.
template <class T, class C>
void combine(const CombineTile& a, const StridedTile& tile) {
  constexpr int64_t kNarrow = sizeof(T), kWide = sizeof(C);
  std::byte *y = tile.data[0], *x = tile.data[1], *received = tile.data[2];
  const bool y_wide = a.y != a.x, received_wide = a.received != a.x;
  const int64_t y_width = y_wide ? kWide : kNarrow,
                received_width = received_wide ? kWide : kNarrow;
  const Loop<C> loop = loop_of<C>(a, received != nullptr);
  const C before = static_cast<C>(a.before), after = static_cast<C>(a.after);
  C x_block[kBlockSize], received_block[kBlockSize], y_block[kBlockSize];
  for (int64_t i = 0; i < tile.n; i += kBlockSize) {
    const int64_t n = tile.n - i < kBlockSize ? tile.n - i : kBlockSize;
    const C* own = load_block<T>(x + i * kNarrow, kNarrow, n, x_block);
    const C* other = nullptr;
    if (received) {
      const std::byte* from = received + i * received_width;
      other = received_wide ? load_block<C>(from, kWide, n, received_block)
                            : load_block<T>(from, kNarrow, n, received_block);
    }
    std::byte* to = y + i * y_width;
    C* result =
        y_wide ? result_block<C>(to, kWide, y_block) : result_block<T>(to, kNarrow, y_block);
    loop(result, other, own, n, before, after);
    if (!y_wide) {
      store_block<T>(result, to, kNarrow, n);
    }
  }
}

}  // namespace

void combine_tile(const CombineTile& a, const StridedTile& tile) {
  switch (a.x) {
    case DType::f64: return combine<double, double>(a, tile);
    case DType::f32: return combine<float, float>(a, tile);
    case DType::f16: return combine<half, float>(a, tile);
    case DType::bf16: return combine<bfloat16, float>(a, tile);
    case DType::i64: return combine<int64_t, int64_t>(a, tile);
    default: return combine<int32_t, int32_t>(a, tile);
  }
}

}  // namespace binade::kernels::BINADE_ISA
