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

#include <cstdint>

namespace binade::kernels {

// Elements k and k + 1 of a bf16 operand, which vdpbf16ps multiplies and adds together.
struct BfloatPair {
  bfloat16 even, odd;
};

// What products of T are summed in.
template <class T>
struct SumOf {
  using type = T;
};
template <>
struct SumOf<BfloatPair> {
  using type = float;
};

// What f32 sums are rounded to where they are written.
enum class Rounded : uint8_t { no, f16, bf16 };

inline Rounded rounded_to(DType dtype) {
  return dtype == DType::f16 ? Rounded::f16 : dtype == DType::bf16 ? Rounded::bf16 : Rounded::no;
}

// c[i][j] = relu?(c[i][j]? + sum_k a(i, k) b[k][j] scale[j]? + bias[j]? + other[i][j]?). k runs
// over `segments` runs of `length`; run s of row i starts at a + offsets[s] + i * a_row and
// advances by a_step. Either a_row or a_step is 1. Rows of b follow each other at b_step through
// all segments. Of pairs, k counts pairs and the sum runs over both halves.
template <class T>
struct Tile {
  using Sum = typename SumOf<T>::type;
  const T* a = nullptr;
  int64_t a_row = 1, a_step = 1;
  const int64_t* offsets = nullptr;  // [segments]
  int64_t segments = 1, length = 0;
  const T* b = nullptr;  // every row readable to the full width of the tile
  int64_t b_step = 0;
  void* c = nullptr;  // of Sum, or of float sums rounded to what `rounded` says
  int64_t c_row = 0;
  Rounded rounded = Rounded::no;
  int64_t columns = 0;                          // written; at most the width of the tile
  const Sum *scale = nullptr, *bias = nullptr;  // readable to the full width
  bool accumulate = false;                      // not with a scale
  bool relu = false;
  int64_t below = 0,
          below_rows = 0;      // rows of a to bring near, from `below` rows under this tile's
  const Sum* other = nullptr;  // brought near: as much of it as of c
  int64_t other_row = 0;
  bool plus = false;   // `other` is added before relu
  bool times = false;  // what is written is multiplied by `other`
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
// From a storage dtype to its compute dtype or back, or bf16 to bf16.
struct StridedCopy {
  const void* source = nullptr;
  DType from = DType::f32, to = DType::f32;
  int64_t source_strides[3] = {};
  void* target = nullptr;
  int64_t target_strides[3] = {};
  int64_t sizes[3] = {};
  int64_t padded_columns = 0;  // at least sizes[2] where not 0; then target_strides[2] is 1
};

// What a block may leave out, where row i of a matrix has `visible` + i columns that count: those
// of the result, the others being nobody's concern; those of a, the others being zeros; or those of
// the transpose of a. It is left out by whole tiles: a few more columns may be written or
// multiplied.
enum class Triangle : uint8_t { none, result, a, a_transposed };

// c [m, n] (+)= a [m, k] b [k, n] on one thread; c holds the compute dtype in contiguous rows.
// Elements of packed operands are of the compute dtype, of products in pairs BfloatPair.
struct GemmBlock {
  DType dtype = DType::f32;  // of a and b
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  int64_t a_strides[2] = {}, b_strides[2] = {};
  void* c = nullptr;
  int64_t c_row = 0;
  const void* bias = nullptr;  // compute dtype, readable up to the next multiple of kMaxTileWidth
  bool accumulate = false, relu = false;
  void* packed_a = nullptr;  // min(m, kPackRows) * min(k, kPackDepth) elements
  void* packed_b = nullptr;  // round_up(n, kMaxTileWidth) * min(k, kPackDepth) elements
  // packed_b holds all of b after the call, for calls with other rows and b_is_packed. REQUIRES of
  // both: k <= kPackDepth.
  bool keeps_b = false, b_is_packed = false;
  Triangle triangle = Triangle::none;
  int64_t visible = 0;
  // [m] of the compute dtype: the sums of the rows of a are added.
  void* row_sums = nullptr;
  // [m, n] of the compute dtype, contiguous rows: brought near for what comes after, or multiplied
  // by (`times`) what is written.
  const void* other = nullptr;
  int64_t other_row = 0;
  bool times = false;
  // What c holds where that is not the compute dtype. REQUIRES: k (of pairs k / 2) <= kPackDepth.
  Rounded rounded = Rounded::no;
};

inline constexpr int64_t kMaxTileWidth = 32;
inline constexpr int64_t kUnpackedColumns =
    128;                                   // gemm_block reads rows of a as they lie up to this n
inline constexpr int64_t kPackRows = 252;  // a panel block of a stays in the second-level cache
// Of k (or of pairs) that is summed at a time, in as few and as equal parts as it takes. Depends on
// nothing else: it fixes the order of additions.
inline constexpr int64_t kPackDepth = 384;

// Steps of k of some rows of a, or columns of b, to be packed as [steps][step_width] elements of a
// tile's operands.
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

// Tiles over outer[0] x outer[1] matrices: c[o][i][j] (+)= sum_k a[o](i, k) b[k][j] with one b,
// where a[o] = a + o[0] * a_outer[0] + o[1] * a_outer[1], likewise c[o]. See Tile for the rest.
struct TileGrid {
  DType compute = DType::f32;
  int64_t outer[2] = {1, 1}, rows = 0, columns = 0;
  const void* a = nullptr;
  int64_t a_outer[2] = {}, a_row = 1, a_step = 1;
  const int64_t* offsets = nullptr;
  int64_t segments = 1, length = 0;
  const void* b = nullptr;  // panels of segments * length rows; or, with b_step, rows as they are
  int64_t b_step = 0;       // elements from row to row where columns fill whole tiles, else 0
  void* c = nullptr;
  int64_t c_outer[2] = {}, c_row = 0;
  const void *scale = nullptr, *bias = nullptr;
  const void* plus = nullptr;  // of the compute dtype, lies as c does: added before relu
  bool accumulate = false, relu = false;
  Rounded rounded = Rounded::no;  // what c holds where that is not the compute dtype
};

BINADE_ISA_KERNEL(pack_panels, const PanelPacking&)
BINADE_ISA_KERNEL(tile_grid, const TileGrid&)
BINADE_ISA_KERNEL(gemm_block, const GemmBlock&)
BINADE_ISA_KERNEL(tile_sets, TileSet<float>&, TileSet<double>&)
BINADE_ISA_KERNEL(copy_strided, const StridedCopy&)

}  // namespace binade::kernels
