// The two building blocks of gemm and conv2d, internal to kernels/: a register tile (rows of a
// times a panel of b) and a strided copy that converts. gemm packs its operands into panels and
// runs tiles over them; conv2d runs tiles straight over padded channels-last images.
//
// Every element of a tile is one chain of multiply-adds in the order of k, whatever the size of the
// tile around it: how the work is cut into tiles and threads never changes a bit of the result.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/half.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

#include <cstdint>

namespace binade::kernels {

// Elements k and k + 1 of a bf16 operand, which vdpbf16ps multiplies and adds together.
struct BfloatPair {
  bfloat16 even, odd;
};

// The type that sums products of T.
template <class T>
struct SumOf {
  using type = T;
};
template <>
struct SumOf<BfloatPair> {
  using type = float;
};

// The sum of a tile: k runs over `segments` runs of `length` steps. Run s of row i starts at a +
// offsets[s] + i * a_row and advances by a_step. Either a_row or a_step is 1. For products in pairs
// a step is two elements of k, and lengths and strides count pairs.
struct TileSum {
  int64_t a_row = 1, a_step = 1;
  const int64_t* offsets = nullptr;  // [segments]
  int64_t segments = 1, length = 0;
};

// c[i][j] = epilogue(sum_k a(i, k) b[k][j]). Successive rows of b are b_step apart, across segments
// too.
template <class T>
struct Tile {
  using Sum = typename SumOf<T>::type;
  const T* a = nullptr;
  TileSum sum = {};
  const T* b = nullptr;  // every row readable to the full width of the tile
  int64_t b_step = 0;
  void* c = nullptr;  // Sum, or what the epilogue rounds to
  int64_t c_row = 0;
  int64_t columns = 0;  // written; at most the width of the tile
  TileEpilogue epilogue = {};
  // Rows of a to prefetch for the next tile, counted from the row after this tile's last.
  int64_t next_row = 0, next_rows = 0;
};

template <class T>
using TileFunction = void (*)(const Tile<T>&);

// A register tile has up to max_rows rows and 1 or 2 vectors of `lanes` columns.
template <class T>
struct TileSet {
  int max_rows = 0, lanes = 0;
  const TileFunction<T>* functions = nullptr;  // [vectors - 1][a_row == 1][rows - 1]

  int64_t width() const { return 2 * lanes; }
  TileFunction<T> get(int64_t rows, int64_t columns, bool rows_contiguous) const {
    return functions[((columns > lanes) * 2 + rows_contiguous) * max_rows + rows - 1];
  }
};

// target[i][j][k] = source[i][j][k], converted; columns k from sizes[2] to padded_columns become 0.
// Converts a storage dtype to its compute dtype or back, or copies bf16.
struct StridedCopy {
  const void* source = nullptr;
  DType from = DType::f32, to = DType::f32;
  int64_t source_strides[3] = {};
  void* target = nullptr;
  int64_t target_strides[3] = {};
  int64_t sizes[3] = {};
  int64_t padded_columns = 0;  // at least sizes[2] where not 0; then target_strides[2] is 1
};

// The matrix of a product that is triangular, if any. In row i only its first `visible` + i columns
// are needed (result) or not zero (a; a_transposed: the transpose of a). A block skips whole tiles
// outside the triangle, so a few more columns may be written or multiplied.
enum class Triangular : uint8_t { none, result, a, a_transposed };

// The operands of a matrix product, a [m, k] and b [k, n]; strides of row and column.
struct MatrixProduct {
  DType dtype = DType::f32;
  int64_t m = 0, n = 0, k = 0;
  const void *a = nullptr, *b = nullptr;
  int64_t a_strides[2] = {}, b_strides[2] = {};
};

// c [m, n] = epilogue(a b) on one thread; c has contiguous rows of the compute dtype, or of the
// dtype that the epilogue rounds to. Packed operands hold the compute dtype, or BfloatPair for
// products in pairs.
struct GemmBlock {
  MatrixProduct product = {};
  void* c = nullptr;
  int64_t c_row = 0;
  TileEpilogue epilogue = {};  // rounds only if k (in pairs k / 2) <= kPackDepth
  void* packed_a = nullptr;    // min(m, kPackRows) * min(k, kPackDepth) elements
  void* packed_b = nullptr;    // round_up(n, kMaxTileWidth) * min(k, kPackDepth) elements
  // keeps_b: packed_b holds all of b after the call, for calls with other rows and b_is_packed.
  // Both require k <= kPackDepth.
  bool keeps_b = false, b_is_packed = false;
  // Few rows: b is read in place (kernels/gemm/gemm_rows_internal.h). packed_a holds m * k
  // elements, packed_b is not used. Requires that b has adjacent rows or columns, no kept_b and no
  // row_sums.
  bool few_rows = false;
  // All of b as gemm_pack writes it, if it was packed before; then packed_b is not used.
  const void* kept_b = nullptr;
  int64_t kept_columns = 0, kept_first = 0;  // of all of b; the first one that is multiplied
  Triangular triangle = Triangular::none;
  int64_t visible = 0;
  void* row_sums = nullptr;  // [m] of the compute dtype: the sums of the rows of a are added
};

// b of a product, packed as a whole: the panels of the first block of k, then those of the next.
// The last panel has no padding; tiles read up to two vectors beyond the last element.
struct ProductPacking {
  MatrixProduct product = {};  // k, n and b
  void* target = nullptr;      // k * n elements of the compute dtype, or pairs of k
};

inline constexpr int64_t kMaxTileWidth = 32;
// The most rows, and the fewest columns, of products that read b in place in one pass.
inline constexpr int64_t kFewRows = 16, kRowsColumns = 8;
// Up to this n, gemm_block reads the rows of a in place.
inline constexpr int64_t kUnpackedColumns = 128;
inline constexpr int64_t kPackRows = 252;  // a panel block of a stays in the second-level cache
// k (or its pairs) is split into equal blocks of at most kPackDepth; each block is summed before
// the next starts. This alone fixes the order of additions.
inline constexpr int64_t kPackDepth = 384;

// Packs steps of k of some rows of a, or columns of b, as [steps][step_width] elements of a tile's
// operands.
struct StepPacking {
  const void* source = nullptr;
  DType dtype = DType::f32;
  int64_t k_stride = 0, column_stride = 0;  // of the source
  int64_t k = 0, columns = 0;               // of the source; an odd last k is a pair with 0
  int64_t step_width = 0;                   // columns beyond `columns` become 0
};

// Packs a matrix [rows, columns] into rows [first_row, first_row + rows) of panels as wide as a
// tile. Panel p of a packed matrix of total_rows rows starts at p * total_rows * (width of a tile).
struct PanelPacking {
  const void* source = nullptr;
  DType from = DType::f32;
  int64_t row_stride = 0, column_stride = 1;
  int64_t rows = 0, columns = 0;
  int64_t first_row = 0, total_rows = 0;
  void* target = nullptr;  // compute dtype, or pairs of rows; then first_row is even
};

// Tiles over outer[0] x outer[1] matrices: c[o][i][j] = epilogue(sum_k a[o](i, k) b[k][j]) with one
// b, where a[o] = a + o[0] * a_outer[0] + o[1] * a_outer[1]; c[o] likewise. The operand of the
// epilogue has the layout of c.
struct TileGrid {
  DType compute = DType::f32;
  int64_t outer[2] = {1, 1}, rows = 0, columns = 0;
  const void* a = nullptr;
  int64_t a_outer[2] = {};
  TileSum sum = {};
  const void* b = nullptr;  // panels of segments * length rows; with b_step, rows in place
  int64_t b_step = 0;       // elements from row to row if columns fill whole tiles, else 0
  void* c = nullptr;
  int64_t c_outer[2] = {}, c_row = 0;
  TileEpilogue epilogue = {};
};

BINADE_ISA_KERNEL(pack_panels, const PanelPacking&)
BINADE_ISA_KERNEL(tile_grid, const TileGrid&)
BINADE_ISA_KERNEL(gemm_block, const GemmBlock&)
BINADE_ISA_KERNEL(gemm_pack, const ProductPacking&)
BINADE_ISA_KERNEL(tile_sets, TileSet<float>&, TileSet<double>&)
BINADE_ISA_KERNEL(copy_strided, const StridedCopy&)

}  // namespace binade::kernels
