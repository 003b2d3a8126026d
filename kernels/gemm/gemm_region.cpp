// The product of a GemmProblem. The output is cut into panels along its longer side; every thread
// computes a range of panels alone with private packed operands, so there is one join and nothing
// shared. The bits do not depend on the cut (kernels/gemm/contraction_internal.h).
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/gemm_problem_internal.h>
#include <binade/kernels/pointwise/pointwise_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr double kSerialFlops = 1.5e6;  // below it, starting threads costs more than it saves
constexpr int64_t kRowUnit = 28, kColumnUnit = kMaxTileWidth;
constexpr int64_t kDirectColumns = 2048;                         // packed b of one block
constexpr int64_t kBufferedRows = 1008, kBufferedColumns = 512;  // if y needs a float copy
constexpr int64_t kNearRows = 126;  // the same if k is one block, which stays in a near cache

// A block of sums, in y or in a buffer of contiguous rows in the compute dtype.
struct Sums {
  std::byte* data = nullptr;
  int64_t row = 0;  // elements from row to row
  int64_t rows = 0, columns = 0;
};

// Copies a block between y's layout and dtype and the buffer.
void copy_block(const GemmProblem& p, std::byte* y, const Sums& buffer, bool to_y) {
  const DType compute = compute_dtype(p.dtype());
  StridedCopy copy{.source = to_y ? buffer.data : y,
                   .from = to_y ? compute : p.dtype(),
                   .to = to_y ? p.dtype() : compute,
                   .source_strides = {0, p.y_strides[1], p.y_strides[2]},
                   .target = to_y ? y : buffer.data,
                   .target_strides = {0, p.y_strides[1], p.y_strides[2]},
                   .sizes = {1, buffer.rows, buffer.columns}};
  int64_t* dense = to_y ? copy.source_strides : copy.target_strides;
  dense[1] = buffer.row;
  dense[2] = 1;
  copy_strided_best(copy);
}

// Adds a bias per row and applies relu; register tiles do the same with a bias per column.
template <class T>
void apply_by_rows(const Sums& sums, const std::byte* bias, bool relu) {
  const auto [data, row_stride, rows, columns] = sums;
  for (int64_t i = 0; i < rows; ++i) {
    T* row = reinterpret_cast<T*>(data) + i * row_stride;
    const T shift = bias ? reinterpret_cast<const T*>(bias)[i] : T(0);
    for (int64_t j = 0; j < columns && bias; ++j) {
      row[j] += shift;
    }
    for (int64_t j = 0; j < columns && relu; ++j) {
      row[j] = row[j] < 0 ? T(0) : row[j];  // keeps NaN
    }
  }
}

void apply_gelu(Unary op, DType dtype, const Sums& sums) {
  const auto size = static_cast<int64_t>(size_of(dtype)), outer = sums.row * size;
  unary_forward_tile_best(op, dtype, 0, 0,
                          StridedTile{.data = {sums.data, sums.data},
                                      .inner = {size, size},
                                      .outer = {outer, outer},
                                      .rows = sums.rows,
                                      .n = sums.columns});
}

// gelu or gelu_tanh in place; its slope at the sums goes to `slope`.
void apply_gelu_with_slope(Unary gelu, const Sums& sums, std::byte* slope, int64_t slope_row) {
  constexpr int64_t kSize = sizeof(float);
  const int64_t outer = sums.row * kSize;
  unary_slope_tile_best(gelu, StridedTile{.data = {sums.data, sums.data, slope},
                                          .inner = {kSize, kSize, kSize},
                                          .outer = {outer, outer, slope_row * kSize},
                                          .rows = sums.rows,
                                          .n = sums.columns});
}

// Rows [row0, row1) and columns [column0, column1) of one matrix of the batch, on this thread.
struct Region {
  int64_t matrix, row0, row1, column0, column1;
  int64_t rows() const { return row1 - row0; }
  int64_t columns() const { return column1 - column0; }
};

// Multiplies a region block by block; packed operands and sums hold one block.
class RegionProduct {
 public:
  RegionProduct(const GemmProblem& p, const Region& region)
      : p_(p),
        region_(region),
        direct_(p.direct()),
        block_rows_(rows_of_block()),
        block_columns_(std::min(region.columns(), direct_ ? kDirectColumns : kBufferedColumns)) {}

  void run() const {
    const int64_t depth = std::min(p_.steps(), kPackDepth);
    const int64_t a = p_.few_rows ? ceil_div(block_rows_ * p_.steps(), 16) * 16
                                  : ceil_div(std::min(block_rows_, kPackRows) * depth, 16) * 16;
    const int64_t b = p_.few_rows || p_.kept_b
                          ? 0
                          : ceil_div(block_columns_, kMaxTileWidth) * kMaxTileWidth * depth;
    const int64_t c = direct_ ? 0 : block_rows_ * block_columns_;
    const Workspace workspace((a + b + c) * p_.compute_size());
    const Memory memory{workspace.as<std::byte>(),
                        workspace.as<std::byte>() + a * p_.compute_size(),
                        workspace.as<std::byte>() + (a + b) * p_.compute_size()};
    for (int64_t j = region_.column0; j < region_.column1; j += block_columns_) {
      for (int64_t i = region_.row0; i < region_.row1; i += block_rows_) {
        run_block(i, j, memory);
      }
    }
  }

 private:
  struct Memory {
    std::byte *packed_a, *packed_b, *sums;
  };

  // If a later step reads the sums, a block has few rows, so that they stay in cache; else it is
  // the whole region.
  int64_t rows_of_block() const {
    const bool whole = direct_ && !p_.slope;
    return whole ? region_.rows()
                 : std::min(region_.rows(), p_.is_one_block() ? kNearRows : kBufferedRows);
  }

  // The block whose first element is (i, j).
  void run_block(int64_t i, int64_t j, const Memory& memory) const {
    std::byte* y =
        p_.y +
        (region_.matrix * p_.y_strides[0] + i * p_.y_strides[1] + j * p_.y_strides[2]) * p_.size();
    const int64_t columns = std::min(block_columns_, region_.column1 - j);
    const Sums sums{.data = direct_ ? y : memory.sums,
                    .row = direct_ ? p_.y_strides[1] : columns,
                    .rows = std::min(block_rows_, region_.row1 - i),
                    .columns = columns};
    if (!direct_ && p_.epilogue.accumulate) {
      copy_block(p_, y, sums, false);
    }
    multiply_block(i, j, sums, memory);
    apply_rest(i, j, sums);
    if (!direct_) {
      copy_block(p_, y, sums, true);
    }
  }

  void multiply_block(int64_t i, int64_t j, const Sums& sums, const Memory& memory) const {
    GemmBlock block{
        .product = p_.product,
        .c = sums.data,
        .c_row = sums.row,
        .epilogue = p_.epilogue.at(i, j, p_.compute_size()),
        .packed_a = memory.packed_a,
        .packed_b = memory.packed_b,
        .keeps_b = !p_.kept_b && p_.is_one_block() && block_rows_ < region_.rows(),
        .b_is_packed = !p_.kept_b && p_.is_one_block() && i > region_.row0,
        .few_rows = p_.few_rows,
        .kept_b = p_.kept_b,
        .kept_columns = p_.product.n,
        .kept_first = j,
        .row_sums = p_.row_sums && j == 0 ? p_.row_sums + i * p_.compute_size() : nullptr};
    const MatrixProduct& all = p_.product;
    block.product.m = sums.rows;
    block.product.n = sums.columns;
    block.product.a = static_cast<const std::byte*>(all.a) +
                      (region_.matrix * p_.a_batch + i * all.a_strides[0]) * p_.size();
    block.product.b = static_cast<const std::byte*>(all.b) +
                      (region_.matrix * p_.b_batch + j * all.b_strides[1]) * p_.size();
    block.epilogue.rounded = direct_ ? rounded_to(p_.dtype()) : Rounded::no;
    if (p_.transposed) {  // apply_rest
      block.epilogue.bias = nullptr;
      block.epilogue.relu = false;
    }
    p_.pairs ? gemm_block_pairs_best(block) : gemm_block_best(block);
  }

  // The part of the epilogue that tiles do not apply.
  void apply_rest(int64_t i, int64_t j, const Sums& sums) const {
    if (p_.transposed) {
      const std::byte* bias = p_.epilogue.bias ? p_.epilogue.bias + i * p_.compute_size() : nullptr;
      p_.dtype() == DType::f64 ? apply_by_rows<double>(sums, bias, p_.epilogue.relu)
                               : apply_by_rows<float>(sums, bias, p_.epilogue.relu);
    }
    const Unary gelu = p_.activation == Activation::gelu ? Unary::gelu : Unary::gelu_tanh;
    if (p_.slope) {
      const int64_t row = p_.epilogue.operand_row;
      apply_gelu_with_slope(gelu, sums, p_.slope + (i * row + j) * p_.compute_size(), row);
    } else if (p_.is_gelu()) {
      apply_gelu(gelu, compute_dtype(p_.dtype()), sums);
    }
  }

  const GemmProblem& p_;
  const Region& region_;
  const bool direct_;  // sums are computed in y
  const int64_t block_rows_, block_columns_;
};

}  // namespace

void multiply_on_threads(const GemmProblem& p) {
  const auto& [dtype, m, n, k, a, b, a_strides, b_strides] = p.product;
  const bool by_rows = m >= n;
  const int64_t unit = by_rows ? kRowUnit : kColumnUnit;
  const int64_t extent = by_rows ? m : n, units = ceil_div(extent, unit);
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t count = p.batch * units;
  const double per_unit = flops / static_cast<double>(units) + 1;
  const auto grain =
      static_cast<int64_t>(std::min(kSerialFlops / 2 / per_unit + 1, static_cast<double>(count)));
  auto body = [&, rows = m, columns = n](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t matrix = begin / units, first = begin % units;
      const int64_t last = std::min(units, first + end - begin);
      Region region{matrix, 0, rows, 0, columns};
      (by_rows ? region.row0 : region.column0) = first * unit;
      (by_rows ? region.row1 : region.column1) = std::min(last * unit, extent);
      RegionProduct(p, region).run();
      begin += last - first;
    }
  };
  if (flops * static_cast<double>(p.batch) < kSerialFlops) {
    body(0, count);
  } else {
    parallel_for(count, grain, body);
  }
}

}  // namespace binade::kernels
