// Binary operations and comparisons over tiles: one loop per functor and compute type.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/pointwise/binary_functors.h>
#include <binade/kernels/pointwise/pointwise_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C, class Functor>
void forward_loop(C* y, const C* a, const C* b, const C*, int64_t n, MapScalars<C>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = Functor::forward(a[i], b[i]);
  }
}

template <class C, class Functor>
void backward_a_loop(C* da, const C* a, const C* b, const C* dy, int64_t n, MapScalars<C>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    da[i] = Functor::backward_a(a[i], b[i], dy[i]);
  }
}

template <class C, class Functor>
void backward_b_loop(C* db, const C* a, const C* b, const C* dy, int64_t n, MapScalars<C>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    db[i] = Functor::backward_b(a[i], b[i], dy[i]);
  }
}

template <class C>
struct Loops {
#define BINADE_ENTRY(name, Functor, ...) forward_loop<C, functor::Functor>,
  static constexpr MapLoop<C> kForward[] = {BINADE_BINARY_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
#define BINADE_ENTRY(name, Functor, ...) \
  {backward_a_loop<C, functor::Functor>, backward_b_loop<C, functor::Functor>},
  static constexpr MapLoop<C> kBackward[][2] = {BINADE_BINARY_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
};

template <class C>
MapLoop<C> integer_loop(Binary op) {
  switch (op) {
#define BINADE_CASE(name, Functor, ...)           \
  case Binary::name:                              \
    if constexpr (takes_integers(Binary::name)) { \
      return forward_loop<C, functor::Functor>;   \
    }                                             \
    break;
    BINADE_BINARY_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
  return nullptr;
}

template <class C>
using CompareLoop = void (*)(uint8_t* y, const C* a, const C* b, int64_t n);

#define BINADE_COMPARE_LOOP(name, symbol)                                             \
  template <class C>                                                                  \
  void name##_loop(uint8_t* y, const C* a, const C* b, int64_t n) {                   \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) { y[i] = a[i] symbol b[i]; } \
  }
BINADE_COMPARE_OPS(BINADE_COMPARE_LOOP)
#undef BINADE_COMPARE_LOOP

template <class T, class C>
void compare(Compare op, const StridedTile& tile) {
#define BINADE_ENTRY(name, symbol) name##_loop<C>,
  static constexpr CompareLoop<C> kLoop[] = {BINADE_COMPARE_OPS(BINADE_ENTRY)};
#undef BINADE_ENTRY
  const CompareLoop<C> loop = kLoop[static_cast<int>(op)];
  C a_block[kBlockSize], b_block[kBlockSize];
  uint8_t y_block[kBlockSize];
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t i = 0; i < tile.n; i += kBlockSize) {
      const int64_t n = tile.n - i < kBlockSize ? tile.n - i : kBlockSize;
      std::byte* at[3];
      for (int k = 0; k < 3; ++k) {
        at[k] = tile.data[k] + row * tile.outer[k] + i * tile.inner[k];
      }
      const C* a = load_block<T>(at[1], tile.inner[1], n, a_block);
      const C* b = load_block<T>(at[2], tile.inner[2], n, b_block);
      uint8_t* y = result_block<uint8_t>(at[0], tile.inner[0], y_block);
      loop(y, a, b, n);
      store_block<uint8_t>(y, at[0], tile.inner[0], n);
    }
  }
}

}  // namespace

void binary_forward_tile(Binary op, DType dtype, const StridedTile& tile) {
  const int i = static_cast<int>(op);
  switch (dtype) {
    case DType::i64: return map_tile<int64_t, int64_t>(integer_loop<int64_t>(op), 2, tile, {});
    case DType::i32: return map_tile<int32_t, int32_t>(integer_loop<int32_t>(op), 2, tile, {});
    case DType::u8: return map_tile<uint8_t, uint8_t>(integer_loop<uint8_t>(op), 2, tile, {});
    default:
      return map_floating_tile(dtype, {Loops<float>::kForward[i], Loops<double>::kForward[i]}, 2,
                               tile);
  }
}

void binary_backward_tile(Binary op, int which, DType dtype, const StridedTile& tile) {
  const int i = static_cast<int>(op);
  map_floating_tile(dtype, {Loops<float>::kBackward[i][which], Loops<double>::kBackward[i][which]},
                    3, tile);
}

void compare_tile(Compare op, DType dtype, const StridedTile& tile) {
  switch (dtype) {
    case DType::f64: return compare<double, double>(op, tile);
    case DType::f32: return compare<float, float>(op, tile);
    case DType::f16: return compare<half, float>(op, tile);
    case DType::bf16: return compare<bfloat16, float>(op, tile);
    case DType::i64: return compare<int64_t, int64_t>(op, tile);
    case DType::i32: return compare<int32_t, int32_t>(op, tile);
    default: return compare<uint8_t, uint8_t>(op, tile);
  }
}

}  // namespace binade::kernels::BINADE_ISA
