// Three-operand loops over tiles. A selection moves bits, so it is one loop per width; operands
// that repeat along the row (numbers, broadcasts) stay in a register.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/base/pointwise_math.h>
#include <binade/kernels/pointwise/ternary_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <int kStepA, int kStepB, class W>
void where_loop(W* y, const uint8_t* condition, const W* a, const W* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const W if_true = a[kStepA * i], if_false = b[kStepB * i];
    y[i] = condition[i] != 0 ? if_true : if_false;
  }
}

template <class W>
void where_row(const StridedTile& tile, std::byte* const (&at)[4]) {
  constexpr int64_t kWidth = sizeof(W);
  const int64_t *inner = tile.inner, a_step = inner[2], b_step = inner[3];
  const bool rows = inner[0] == kWidth && inner[1] == 1;
  W* y = reinterpret_cast<W*>(at[0]);
  const auto* condition = reinterpret_cast<const uint8_t*>(at[1]);
  const W *a = reinterpret_cast<const W*>(at[2]), *b = reinterpret_cast<const W*>(at[3]);
  if (rows && a_step == kWidth && b_step == kWidth) {
    return where_loop<1, 1>(y, condition, a, b, tile.n);
  }
  if (rows && a_step == kWidth && b_step == 0) {
    return where_loop<1, 0>(y, condition, a, b, tile.n);
  }
  if (rows && a_step == 0 && b_step == kWidth) {
    return where_loop<0, 1>(y, condition, a, b, tile.n);
  }
  for (int64_t i = 0; i < tile.n; ++i) {
    const bool chosen = *reinterpret_cast<const uint8_t*>(at[1] + i * inner[1]) != 0;
    const std::byte* from = chosen ? at[2] + i * a_step : at[3] + i * b_step;
    *reinterpret_cast<W*>(at[0] + i * inner[0]) = *reinterpret_cast<const W*>(from);
  }
}

template <class W>
void where_rows(const StridedTile& tile) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    std::byte* at[4];
    for (int k = 0; k < 4; ++k) {
      at[k] = tile.data[k] + row * tile.outer[k];
    }
    where_row<W>(tile, at);
  }
}

template <class C>
void lerp_loop(C* y, const C* a, const C* b, const C* weight, int64_t n, MapScalars<C>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = math_lerp(a[i], b[i], weight[i]);
  }
}

template <class C>
void lerp_number_loop(C* y, const C* a, const C* b, const C*, int64_t n, MapScalars<C> weight) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = math_lerp(a[i], b[i], weight.alpha);
  }
}

}  // namespace

void where_tile(int64_t width, const StridedTile& tile) {
  switch (width) {
    case 8: return where_rows<uint64_t>(tile);
    case 4: return where_rows<uint32_t>(tile);
    case 2: return where_rows<uint16_t>(tile);
    default: return where_rows<uint8_t>(tile);
  }
}

void lerp_tile(DType dtype, const StridedTile& tile) {
  map_floating_tile(dtype, {lerp_loop<float>, lerp_loop<double>}, 3, tile);
}

void lerp_number_tile(DType dtype, double weight, const StridedTile& tile) {
  map_floating_tile(dtype, {lerp_number_loop<float>, lerp_number_loop<double>}, 2, tile,
                    {weight, 0});
}

}  // namespace binade::kernels::BINADE_ISA
