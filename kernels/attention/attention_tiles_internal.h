// Shared by attention forward and backward on the CPU: matrices inside 4-d views, products of tiles
// by the gemm micro-kernels, and the mask of a tile. Internal to kernels/.
#pragma once
#include <binade/kernels/attention/attention_internal.h>
#include <binade/kernels/attention/attention_isa_internal.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>

#include <algorithm>

namespace binade::kernels {

inline constexpr int64_t kQueryRows = 64, kKeyRows = 128;

// [rows, columns] with any strides, in elements.
struct Matrix {
  std::byte* data;
  DType dtype;
  int64_t row, column;

  Matrix transposed() const { return {data, dtype, column, row}; }
};

// Rows from `first` of the matrix of one head.
inline Matrix matrix_of(const View& view, int64_t batch, int64_t head, int64_t first) {
  const Dims& s = view.strides;
  return {view.data + (batch * s[0] + head * s[1] + first * s[2]) *
                          static_cast<int64_t>(size_of(view.dtype)),
          view.dtype, s[2], s[3]};
}
inline Matrix dense_matrix(void* data, DType dtype, int64_t columns) {
  return {static_cast<std::byte*>(data), dtype, columns, 1};
}

// target = source, converted to or from the compute dtype.
inline void convert(const Matrix& source, const Matrix& target, int64_t rows, int64_t columns) {
  copy_strided_best(StridedCopy{.source = source.data,
                                .from = source.dtype,
                                .to = target.dtype,
                                .source_strides = {0, source.row, source.column},
                                .target = target.data,
                                .target_strides = {0, target.row, target.column},
                                .sizes = {1, rows, columns}});
}

// The triangle of a tile that a causal query sees, for a product with the tile.
struct Seen {
  Triangular shape = Triangular::none;
  int64_t visible = 0;
};

// The sizes of a product of a [m, k] and b [k, n].
struct ProductSizes {
  int64_t m, n, k;
};

// Memory of one task: arrays of the compute dtype, and the packing buffers of gemm.
class TileMemory {
 public:
  TileMemory(DType dtype, const AttentionSizes& n)
      : compute_(compute_dtype(dtype)),
        pairs_(pairs_run(dtype)),
        wide_((std::max(n.size, n.value_size) + 31) / 32 * 32),
        workspace_(static_cast<size_t>(packed_a() + packed_b() + 3 * kTile + 4 * kKeyRows * wide_ +
                                       kVectors) *
                   size_of(compute_)),
        next_(workspace_.as<std::byte>()) {
    packed_a_ = take(packed_a());
    packed_b_ = take(packed_b());
  }
  // `count` elements, aligned to 64 bytes.
  std::byte* take(int64_t count) {
    std::byte* at = next_;
    next_ += (count * static_cast<int64_t>(size_of(compute_)) + 63) / 64 * 64;
    return at;
  }
  DType compute() const { return compute_; }

  // c [m, n] (+)= a [m, k] b [k, n]; a and b have the same dtype.
  void multiply(const Matrix& a, const Matrix& b, const Matrix& c, const ProductSizes& sizes,
                bool accumulate, const Seen& seen = {}) const {
    const GemmBlock block{.product = {.dtype = a.dtype,
                                      .m = sizes.m,
                                      .n = sizes.n,
                                      .k = sizes.k,
                                      .a = a.data,
                                      .b = b.data,
                                      .a_strides = {a.row, a.column},
                                      .b_strides = {b.row, b.column}},
                          .c = c.data,
                          .c_row = c.row,
                          .epilogue = {.accumulate = accumulate},
                          .packed_a = packed_a_,
                          .packed_b = packed_b_,
                          .triangle = seen.shape,
                          .visible = seen.visible};
    pairs_&& a.dtype == DType::bf16 ? gemm_block_pairs_best(block) : gemm_block_best(block);
  }
  // The matrix in the compute dtype: itself, or converted into `buffer`.
  Matrix in_compute(const Matrix& source, std::byte* buffer, int64_t rows, int64_t columns) const {
    if (source.dtype == compute_) {
      return source;
    }
    const Matrix dense = dense_matrix(buffer, compute_, columns);
    convert(source, dense, rows, columns);
    return dense;
  }

 private:
  static constexpr int64_t kTile = kQueryRows * kKeyRows, kVectors = 1024;
  int64_t packed_a() const { return kQueryRows * std::max(std::min(wide_, kPackDepth), kKeyRows); }
  int64_t packed_b() const { return kKeyRows * wide_; }

  DType compute_;
  bool pairs_;
  int64_t wide_;
  Workspace workspace_;
  std::byte *next_, *packed_a_ = nullptr, *packed_b_ = nullptr;
};

// Queries [i, i + rows) and keys [j, j + cols) of one head.
struct TilePlace {
  int64_t batch, head, i, rows, j, cols;
};

// The tile at a place; its mask is written to `bias` [rows, cols] in the compute dtype.
AttentionTile attention_tile(const AttentionVisibility& visible, const TilePlace& at, double scale,
                             DType compute, std::byte* bias);

// Drops elements of a tile of weights, or of their gradients, and scales the others.
void drop_weights(const AttentionDropout& dropout, const AttentionSizes& n, const TilePlace& at,
                  const Matrix& tile);

// How many tasks of `rows` rows against `other` rows one thread should get at least.
int64_t attention_grain(const AttentionSizes& n, int64_t rows, int64_t other);

// How many of at most `columns` columns from at.j some row of the tile sees. REQUIRES: !hidden().
inline int64_t seen_columns(const AttentionVisibility& visible, const TilePlace& at,
                            int64_t columns) {
  return visible.causal ? std::min(columns, at.i + at.rows - at.j) : columns;
}

// The visible part of a tile, for the product in which the tile is the operand `shape` names.
inline Seen seen_part(const AttentionVisibility& visible, const TilePlace& at, Triangular shape) {
  return visible.causal ? Seen{shape, at.i - at.j + 1} : Seen{};
}

// True if no row of a causal tile sees any of its columns.
inline bool hidden(const AttentionVisibility& visible, const TilePlace& at) {
  return visible.causal && at.j > at.i + at.rows - 1;
}

}  // namespace binade::kernels
