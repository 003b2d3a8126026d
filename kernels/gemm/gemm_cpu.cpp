// CPU matrix product: chooses the provider, whether to transpose, and which operands to pack or to
// read in place. gemm_region.cpp computes the product.
//
// Few rows times a large b are computed in one pass over b (gemm_rows_internal.h).
// With some more rows and a transposed b the product is computed as y^T = b^T a^T: register tiles
// then read b in place or converted row by row. Packing b would be a large part of the total cost.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm_eigen_internal.h>
#include <binade/kernels/gemm/gemm_internal.h>
#include <binade/kernels/gemm/gemm_outer_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/gemm_problem_internal.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <binade/kernels/gemm/packed_epilogue_internal.h>
#include <binade/kernels/reduce/reduce.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kFewColumns = 6;  // a tile of that width has more idle lanes than used ones
// With more rows, tiles that read b in place (adjacent columns) or as factors (adjacent steps) are
// faster.
constexpr int64_t kRowsOfColumns = 2, kRowsOfSteps = 8;
static_assert(kRowsOfSteps <= kFewRows);

void read_strides(const View& view, int64_t& batch, int64_t strides[2]) {
  const MatrixStrides s = matrix_strides(view);
  batch = s.batch;
  strides[0] = s.row;
  strides[1] = s.column;
}

// True if the product reads b in place in one pass, for all rows.
bool is_few_rows(const GemmProblem& p) {
  const auto& [dtype, m, n, k, a, b, a_strides, b_strides] = p.product;
  const bool fits =
      b_strides[0] == 1 ? m <= kRowsOfSteps : b_strides[1] == 1 && m <= kRowsOfColumns;
  return fits && n >= kRowsColumns && k > 0 && !amx_runs(dtype);
}

// True if copying y and packing a costs less than packing b, and b's rows are read so few times
// that packing them does not pay.
bool spares_packing_of_b(const GemmProblem& p) {
  const auto& [dtype, m, n, k, a, b, a_strides, b_strides] = p.product;
  return b_strides[0] == 1 && b_strides[1] != 1 && m <= kUnpackedColumns && m * (n + k) < n * k &&
         !is_few_rows(p);
}

// True if the transpose of y has few rows, while y is so narrow that tiles would be almost empty.
bool has_few_columns(const GemmProblem& p) {
  const auto& [dtype, m, n, k, a, b, a_strides, b_strides] = p.product;
  const bool fits = a_strides[1] == 1 ? n <= kFewColumns : a_strides[0] == 1 && n <= kRowsOfColumns;
  return fits && m > kFewRows && k > 0 && !amx_runs(dtype);
}

// Changes the problem to y^T = b^T a^T if that has contiguous rows or few, or avoids packing b.
bool transpose(const Gemm& g, GemmProblem& p) {
  if (p.y_strides[2] != 1 ? g.epilogue.bias || p.y_strides[1] != 1
                          : !spares_packing_of_b(p) && !has_few_columns(p)) {
    return false;
  }
  p.transposed = p.y_strides[2] == 1;
  MatrixProduct& product = p.product;
  std::swap(product.a, product.b);
  std::swap(product.m, product.n);
  std::swap(p.a_batch, p.b_batch);
  std::swap_ranges(product.a_strides, product.a_strides + 2, product.b_strides);
  std::swap(product.a_strides[0], product.a_strides[1]);
  std::swap(product.b_strides[0], product.b_strides[1]);
  std::swap(p.y_strides[1], p.y_strides[2]);
  return true;
}

GemmProblem problem_of(const Gemm& g) {
  const int dim = g.y.dim();
  GemmProblem p{.product = {.dtype = g.y.dtype,
                            .m = g.y.size(dim - 2),
                            .n = g.y.size(dim - 1),
                            .k = g.a.size(dim - 1),
                            .a = g.a.data,
                            .b = g.b.data},
                .batch = dim == 3 ? g.y.size(0) : 1,
                .y = g.y.data,
                .activation = g.epilogue.activation,
                .slope = g.epilogue.slope.data,
                .pairs = pairs_run(g.y.dtype)};
  read_strides(g.a, p.a_batch, p.product.a_strides);
  read_strides(g.b, p.b_batch, p.product.b_strides);
  read_strides(g.y, p.y_strides[0], p.y_strides + 1);
  return p;
}

// The packed b that the caller keeps, or null. Tiles can read packed memory only if its element
// size is the size of the elements that they multiply.
const std::byte* kept_b(const Gemm& g, const GemmProblem& p) {
  const bool narrow = p.size() != p.compute_size();
  if (!g.packing || p.batch != 1 || p.y_strides[2] != 1 || narrow != p.pairs || p.product.k == 0 ||
      amx_runs(p.dtype())) {
    return nullptr;
  }
  const int64_t element = p.pairs ? 2 * p.size() : p.size();
  return g.packing->get({.order = PackingFormat::Order::product_columns,
                         .pairs = p.pairs,
                         .bytes = static_cast<size_t>(p.steps() * p.product.n * element)},
                        [&p](std::byte* target) {
                          const ProductPacking packing{.product = p.product, .target = target};
                          p.pairs ? avx512_bf16::gemm_pack_pairs(packing) : gemm_pack_best(packing);
                        });
}

// Computes a product with k = 1 if tiles would have an epilogue of at most the sum with y. False if
// it has another form.
bool run_outer(const Gemm& g) {
  const Epilogue& e = g.epilogue;
  const DType dtype = g.y.dtype;
  if (g.y.dim() != 2 || g.a.size(1) != 1 || g.packing || compute_dtype(dtype) != dtype || e.bias ||
      e.factor || e.slope || e.activation != Activation::none) {
    return false;
  }
  const MatrixStrides a = matrix_strides(g.a), b = matrix_strides(g.b), y = matrix_strides(g.y);
  const int64_t n = g.y.size(1);
  if (b.column != 1 || y.column != 1) {
    return false;
  }
  parallel_for(g.y.size(0), kSerialElements / n + 1, [&](int64_t begin, int64_t end) {
    const auto size = static_cast<int64_t>(size_of(dtype));
    gemm_outer_best(OuterProduct{.dtype = dtype,
                                 .a = g.a.data + begin * a.row * size,
                                 .b = g.b.data,
                                 .y = g.y.data + begin * y.row * size,
                                 .a_stride = a.row,
                                 .y_row = y.row,
                                 .m = end - begin,
                                 .n = n,
                                 .accumulate = e.accumulate});
  });
  return true;
}

void run(const Gemm& g, GemmProblem& p) {
  const PackedEpilogue epilogue(g.epilogue);
  p.epilogue = epilogue.tile();
  if (p.epilogue.operand) {
    const View& operand = g.epilogue.factor ? g.epilogue.factor : g.epilogue.slope;
    p.epilogue.operand_row = matrix_strides(operand).row;
  }
  multiply_on_threads(p);
}

}  // namespace

void cpu::gemm(const Gemm& g) {
  check_arguments(g);
  if (g.y.numel == 0) {
    return;
  }
  if (gemm_variant() == KernelVariant::eigen && eigen_gemm(g)) {
    return;
  }
  if (run_outer(g)) {
    return;
  }
  GemmProblem p = problem_of(g);
  p.kept_b = kept_b(g, p);
  if (!p.kept_b && !g.epilogue.factor && !g.epilogue.slope) {  // these have the layout of y
    transpose(g, p);
  }
  p.few_rows = !p.kept_b && is_few_rows(p);
  run(g, p);
}

void cpu::gemm_with_row_sums(const Gemm& g, const View& sums) {
  check_arguments(g);
  check(g.y.dim() == 2 && sums.dim() == 1 && sums.size(0) == g.y.size(0) && sums.dtype == g.y.dtype,
        "gemm_with_row_sums: got y ", g.y.dtype, " ", g.y.sizes, " and sums ", sums.dtype, " ",
        sums.sizes, ", expected [m, n] and [m] of one dtype");
  GemmProblem p = problem_of(g);
  const bool by_eigen = gemm_variant() == KernelVariant::eigen;
  if (g.y.numel > 0 && !by_eigen && run_outer(g)) {
    const int64_t stride = matrix_strides(g.a).row;
    return cpu::copy({.x = view_of(g.a.data, sums.dtype, sums.sizes, {stride}), .y = sums});
  }
  if (g.y.numel == 0 || by_eigen || p.pairs || transpose(g, p)) {
    cpu::gemm(g);
    const View column = view_of(sums.data, sums.dtype, {sums.numel, 1}, {sums.strides[0], 1});
    return cpu::reduce_forward({.op = Reduce::sum, .x = g.a, .y = column});
  }
  const DType compute = compute_dtype(p.dtype());
  const size_t bytes = static_cast<size_t>(p.product.m) * size_of(compute);
  const Workspace workspace(bytes);
  p.row_sums = workspace.as<std::byte>();
  std::fill_n(p.row_sums, bytes, std::byte{0});
  run(g, p);
  copy_strided_best(StridedCopy{.source = p.row_sums,
                                .from = compute,
                                .to = p.dtype(),
                                .source_strides = {0, 1, 1},
                                .target = sums.data,
                                .target_strides = {0, sums.strides[0], 1},
                                .sizes = {1, p.product.m, 1}});
}

}  // namespace binade::kernels
