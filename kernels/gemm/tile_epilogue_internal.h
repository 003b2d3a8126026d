// The form of an Epilogue (kernels/gemm/epilogue.h) that register tiles on the CPU read: pointers
// to memory in the compute dtype. Tiles, grids of tiles and blocks of products use it. Internal to
// kernels/.
#pragma once
#include <binade/kernels/base/dtype.h>

#include <cstdint>

namespace binade::kernels {

// The narrow dtype that f32 sums are rounded to when they are stored.
enum class Rounded : uint8_t { no, f16, bf16 };

inline Rounded rounded_to(DType dtype) {
  return dtype == DType::f16 ? Rounded::f16 : dtype == DType::bf16 ? Rounded::bf16 : Rounded::no;
}

// How a tile uses the operand of the epilogue.
enum class TileOperand : uint8_t {
  prefetch,  // only prefetches it: a later step reads or writes it
  residual,  // adds it before relu
  factor,    // multiplies by it, last
};

// c = relu?(c? + sum * scale? + bias? + residual?) * factor?. f64 tiles support no scale and no
// operand.
struct TileEpilogue {
  const std::byte *scale = nullptr, *bias = nullptr;  // [columns], readable to a tile's full width
  const std::byte* operand = nullptr;                 // [rows, columns], contiguous rows
  int64_t operand_row = 0;
  TileOperand use = TileOperand::prefetch;
  bool accumulate = false;  // not with a scale
  bool relu = false;
  Rounded rounded = Rounded::no;

  // Bytes of a stored element; a sum has `size` bytes.
  [[gnu::always_inline]] int64_t stored(int64_t size) const {
    return rounded == Rounded::no ? size : 2;
  }
  // The epilogue of a tile whose first element is (row, column); `size` is the size of a sum.
  [[gnu::always_inline]] TileEpilogue at(int64_t row, int64_t column, int64_t size) const {
    TileEpilogue e = *this;
    e.scale = scale ? scale + column * size : nullptr;
    e.bias = bias ? bias + column * size : nullptr;
    e.operand = operand ? operand + (row * operand_row + column) * size : nullptr;
    return e;
  }
};

}  // namespace binade::kernels
