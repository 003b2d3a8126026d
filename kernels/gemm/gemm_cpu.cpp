// CPU matrix product. The output is cut into panels along its longer side; every thread computes a
// range of panels alone with private packed operands, so there is one join and nothing shared. The
// bits do not depend on the cut (kernels/gemm/contraction_internal.h).
//
// A product of few rows with a transposed b (a linear layer of a small batch) is computed as y^T =
// b^T a^T: register tiles read b as it lies, or converted row by row, where packing it would cost a
// good part of the whole.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/gemm_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/packed_bias_internal.h>
#include <binade/kernels/pointwise/pointwise_isa_internal.h>
#include <binade/kernels/reduce/reduce.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr double kSerialFlops = 1.5e6;  // below, starting threads costs more than it saves
constexpr int64_t kRowUnit = 28, kColumnUnit = kMaxTileWidth;
constexpr int64_t kDirectColumns = 2048;                         // packed b of one block
constexpr int64_t kBufferedRows = 1008, kBufferedColumns = 512;  // where y needs a float copy
constexpr int64_t kNearRows = 126;  // of it where sums are made at once

struct Problem {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  DType dtype = DType::f32;
  std::byte *a = nullptr, *b = nullptr, *y = nullptr;
  int64_t a_strides[3] = {}, b_strides[3] = {}, y_strides[3] = {};  // batch, row, column
  const std::byte* bias = nullptr;                                  // compute dtype, padded
  bool relu = false, gelu = false, accumulate = false;
  bool flipped = false;           // the bias is of rows
  bool pairs = false;             // kernels/gemm/gemm_pairs_internal.h
  std::byte* row_sums = nullptr;  // [m], compute dtype, zeros
  Finish finish = Finish::none;
  std::byte* other = nullptr;
  int64_t other_row = 0;

  int64_t steps() const { return pairs ? (k + 1) / 2 : k; }  // of k
  bool at_once() const { return steps() <= kPackDepth; }
  // Whether tiles may round their sums: those are whole then.
  bool rounds() const { return at_once() && !flipped && !gelu; }
  bool direct() const { return y_strides[2] == 1 && (compute_dtype(dtype) == dtype || rounds()); }
};

void read_strides(const View& view, int64_t strides[3]) {
  const MatrixStrides s = matrix_strides(view);
  strides[0] = s.batch;
  strides[1] = s.row;
  strides[2] = s.column;
}

// One matrix [rows, columns] copied between y's layout and dtype and a dense buffer.
void copy_block(const Problem& p, std::byte* y, std::byte* buffer, int64_t rows, int64_t columns,
                bool to_y) {
  StridedCopy copy{.source = to_y ? buffer : y,
                   .from = to_y ? compute_dtype(p.dtype) : p.dtype,
                   .to = to_y ? p.dtype : compute_dtype(p.dtype),
                   .source_strides = {0, p.y_strides[1], p.y_strides[2]},
                   .target = to_y ? y : buffer,
                   .target_strides = {0, p.y_strides[1], p.y_strides[2]},
                   .sizes = {1, rows, columns}};
  int64_t* dense = to_y ? copy.source_strides : copy.target_strides;
  dense[1] = columns;
  dense[2] = 1;
  copy_strided_best(copy);
}

// Adds a bias of rows and applies relu, as register tiles do it with a bias of columns.
template <class T>
void finish_rows(std::byte* sums, int64_t row_stride, const std::byte* bias, bool relu,
                 int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    T* row = reinterpret_cast<T*>(sums) + i * row_stride;
    const T shift = bias ? reinterpret_cast<const T*>(bias)[i] : T(0);
    for (int64_t j = 0; j < columns && bias; ++j) {
      row[j] += shift;
    }
    for (int64_t j = 0; j < columns && relu; ++j) {
      row[j] = row[j] < 0 ? T(0) : row[j];  // keeps NaN
    }
  }
}

// gelu_tanh on a block of sums.
void apply_gelu(DType dtype, std::byte* sums, int64_t row_stride, int64_t rows, int64_t columns) {
  const auto size = static_cast<int64_t>(size_of(dtype)), outer = row_stride * size;
  unary_forward_tile_best(Unary::gelu_tanh, dtype, 0, 0,
                          StridedTile{.data = {sums, sums},
                                      .inner = {size, size},
                                      .outer = {outer, outer},
                                      .rows = rows,
                                      .n = columns});
}

// gelu of a block of f32 sums, in place; its slope goes to `other`.
void apply_gelu_with_slope(const Problem& p, std::byte* y, std::byte* other, int64_t rows,
                           int64_t columns) {
  constexpr int64_t kSize = sizeof(float);
  const int64_t outer = p.y_strides[1] * kSize;
  unary_slope_tile_best(Unary::gelu, StridedTile{.data = {y, y, other},
                                                 .inner = {kSize, kSize, kSize},
                                                 .outer = {outer, outer, p.other_row * kSize},
                                                 .rows = rows,
                                                 .n = columns});
}

// Rows [row0, row1) and columns [column0, column1) of one matrix of the batch, on this thread.
struct Region {
  int64_t matrix, row0, row1, column0, column1;
};

void multiply_region(const Problem& p, const Region& region) {
  const int64_t size = size_of(p.dtype), compute_size = size_of(compute_dtype(p.dtype));
  const bool direct = p.direct();
  const int64_t rows = region.row1 - region.row0, columns = region.column1 - region.column0;
  const bool at_once = p.at_once();
  const int64_t near_rows = at_once ? kNearRows : kBufferedRows;
  const bool whole = direct && p.finish != Finish::gelu;
  const int64_t block_rows = whole ? rows : std::min(rows, near_rows);
  const int64_t block_columns = std::min(columns, direct ? kDirectColumns : kBufferedColumns);
  const int64_t depth = std::min(p.steps(), kPackDepth);
  const int64_t elements_a = ceil_div(std::min(block_rows, kPackRows) * depth, 16) * 16;
  const int64_t elements_b = ceil_div(block_columns, kMaxTileWidth) * kMaxTileWidth * depth;
  const int64_t elements_c = direct ? 0 : block_rows * block_columns;
  const Workspace workspace((elements_a + elements_b + elements_c) * compute_size);
  std::byte* packed_a = workspace.as<std::byte>();
  std::byte* packed_b = packed_a + elements_a * compute_size;
  std::byte* buffer = packed_b + elements_b * compute_size;

  for (int64_t j = region.column0; j < region.column1; j += block_columns) {
    for (int64_t i = region.row0; i < region.row1; i += block_rows) {
      const int64_t m = std::min(block_rows, region.row1 - i);
      const int64_t n = std::min(block_columns, region.column1 - j);
      std::byte* y =
          p.y + (region.matrix * p.y_strides[0] + i * p.y_strides[1] + j * p.y_strides[2]) * size;
      if (!direct && p.accumulate) {
        copy_block(p, y, buffer, m, n, false);
      }
      std::byte* other = p.other ? p.other + (i * p.other_row + j) * compute_size : nullptr;
      const GemmBlock block{
          .dtype = p.dtype,
          .m = m,
          .n = n,
          .k = p.k,
          .a = p.a + (region.matrix * p.a_strides[0] + i * p.a_strides[1]) * size,
          .b = p.b + (region.matrix * p.b_strides[0] + j * p.b_strides[2]) * size,
          .a_strides = {p.a_strides[1], p.a_strides[2]},
          .b_strides = {p.b_strides[1], p.b_strides[2]},
          .c = direct ? y : buffer,
          .c_row = direct ? p.y_strides[1] : n,
          .bias = p.bias && !p.flipped ? p.bias + j * compute_size : nullptr,
          .accumulate = p.accumulate,
          .relu = p.relu && !p.flipped,
          .packed_a = packed_a,
          .packed_b = packed_b,
          .keeps_b = at_once && block_rows < rows,
          .b_is_packed = at_once && i > region.row0,
          .row_sums = p.row_sums && j == 0 ? p.row_sums + i * compute_size : nullptr,
          .other = other,
          .other_row = p.other_row,
          .times = p.finish == Finish::times,
          .rounded = direct ? rounded_to(p.dtype) : Rounded::no};
      p.pairs ? gemm_block_pairs_best(block) : gemm_block_best(block);
      std::byte* sums = direct ? y : buffer;
      const int64_t row_stride = direct ? p.y_strides[1] : n;
      if (p.flipped) {
        const std::byte* bias = p.bias ? p.bias + i * compute_size : nullptr;
        p.dtype == DType::f64 ? finish_rows<double>(sums, row_stride, bias, p.relu, m, n)
                              : finish_rows<float>(sums, row_stride, bias, p.relu, m, n);
      }
      if (p.finish == Finish::gelu) {
        apply_gelu_with_slope(p, y, other, m, n);
      }
      if (p.gelu) {
        apply_gelu(compute_dtype(p.dtype), sums, row_stride, m, n);
      }
      if (!direct) {
        copy_block(p, y, buffer, m, n, true);
      }
    }
  }
}

void multiply(const Problem& p) {
  const bool by_rows = p.m >= p.n;
  const int64_t unit = by_rows ? kRowUnit : kColumnUnit;
  const int64_t extent = by_rows ? p.m : p.n, units = ceil_div(extent, unit);
  const double flops =
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const int64_t count = p.batch * units;
  const double per_unit = flops / static_cast<double>(units) + 1;
  const auto grain =
      static_cast<int64_t>(std::min(kSerialFlops / 2 / per_unit + 1, static_cast<double>(count)));
  auto body = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t matrix = begin / units, first = begin % units;
      const int64_t last = std::min(units, first + end - begin);
      Region region{matrix, 0, p.m, 0, p.n};
      (by_rows ? region.row0 : region.column0) = first * unit;
      (by_rows ? region.row1 : region.column1) = std::min(last * unit, extent);
      multiply_region(p, region);
      begin += last - first;
    }
  };
  if (flops * static_cast<double>(p.batch) < kSerialFlops) {
    body(0, count);
  } else {
    parallel_for(count, grain, body);
  }
}

// Whether copying y and packing a is less than packing b, and b's rows are read so few times that
// they need no packing.
bool reads_b_by_rows_flipped(const Problem& p) {
  return p.b_strides[1] == 1 && p.b_strides[2] != 1 && p.m <= kUnpackedColumns &&
         p.m * (p.n + p.k) < p.n * p.k;
}

// Turns the problem into y^T = b^T a^T where that has contiguous rows, or spares the packing of b.
bool turn(const Gemm& g, Problem& p) {
  if (p.y_strides[2] != 1 ? g.bias || p.y_strides[1] != 1 : !reads_b_by_rows_flipped(p)) {
    return false;
  }
  p.flipped = p.y_strides[2] == 1;
  std::swap(p.a, p.b);
  std::swap(p.m, p.n);
  std::swap_ranges(p.a_strides, p.a_strides + 3, p.b_strides);
  std::swap(p.a_strides[1], p.a_strides[2]);
  std::swap(p.b_strides[1], p.b_strides[2]);
  std::swap(p.y_strides[1], p.y_strides[2]);
  return true;
}

Problem problem_of(const Gemm& g) {
  const int dim = g.y.dim();
  Problem p{.batch = dim == 3 ? g.y.size(0) : 1,
            .m = g.y.size(dim - 2),
            .n = g.y.size(dim - 1),
            .k = g.a.size(dim - 1),
            .dtype = g.y.dtype,
            .a = g.a.data,
            .b = g.b.data,
            .y = g.y.data,
            .relu = g.activation == Activation::relu,
            .gelu = g.activation == Activation::gelu_tanh,
            .accumulate = g.accumulate,
            .pairs = pairs_run(g.y.dtype)};
  read_strides(g.a, p.a_strides);
  read_strides(g.b, p.b_strides);
  read_strides(g.y, p.y_strides);
  return p;
}

void run(const Gemm& g, Problem& p) {
  const PackedBias bias(g.bias);
  p.bias = bias.data();
  multiply(p);
}

}  // namespace

void cpu::gemm(const Gemm& g) {
  check_arguments(g);
  if (g.y.numel == 0) {
    return;
  }
  Problem p = problem_of(g);
  turn(g, p);
  run(g, p);
}

void cpu::gemm_with_row_sums(const Gemm& g, const View& sums) {
  check_arguments(g);
  check(g.y.dim() == 2 && sums.dim() == 1 && sums.size(0) == g.y.size(0) && sums.dtype == g.y.dtype,
        "gemm_with_row_sums: got y ", g.y.dtype, " ", g.y.sizes, " and sums ", sums.dtype, " ",
        sums.sizes, ", expected [m, n] and [m] of one dtype");
  Problem p = problem_of(g);
  if (g.y.numel == 0 || p.pairs || turn(g, p)) {
    cpu::gemm(g);
    const View column = view_of(sums.data, sums.dtype, {sums.numel, 1}, {sums.strides[0], 1});
    return cpu::reduce_forward({.op = Reduce::sum, .x = g.a, .y = column});
  }
  const DType compute = compute_dtype(p.dtype);
  const size_t bytes = static_cast<size_t>(p.m) * size_of(compute);
  const Workspace workspace(bytes);
  p.row_sums = workspace.as<std::byte>();
  std::fill_n(p.row_sums, bytes, std::byte{0});
  run(g, p);
  copy_strided_best(StridedCopy{.source = p.row_sums,
                                .from = compute,
                                .to = p.dtype,
                                .source_strides = {0, 1, 1},
                                .target = sums.data,
                                .target_strides = {0, sums.strides[0], 1},
                                .sizes = {1, p.m, 1}});
}

void cpu::gemm_finished(const Gemm& g, Finish finish, const View& other) {
  check_arguments(g);
  check(g.y.dtype == DType::f32 && other.dtype == DType::f32 && g.y.dim() == 2 &&
            other.sizes == g.y.sizes && matrix_strides(g.y).column == 1 &&
            matrix_strides(other).column == 1 && g.activation == Activation::none,
        "gemm_finished: got y ", g.y.dtype, " ", g.y.sizes, " and other ", other.dtype, " ",
        other.sizes, ", expected f32 [m, n] twice, with adjacent columns");
  if (g.y.numel == 0) {
    return;
  }
  Problem p = problem_of(g);
  p.finish = finish;
  p.other = other.data;
  p.other_row = matrix_strides(other).row;
  run(g, p);
}

}  // namespace binade::kernels
