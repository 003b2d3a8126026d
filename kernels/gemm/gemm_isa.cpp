// Blocks of matrix products of real numbers: f16 and bf16 are converted to f32 while they are
// packed.
#include <binade/kernels/gemm/gemm_block_internal.h>
#include <binade/kernels/gemm/gemm_rows_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
struct Reals {
  using Element = T;
  static constexpr int64_t kPerStep = 1;
  static constexpr int64_t kDepthUnit = 8;
  static constexpr bool kPacksRows = false;

  static bool a_can_stay(const MatrixProduct& p) {
    return sizeof(T) == size_of(p.dtype) && (p.a_strides[0] == 1 || p.a_strides[1] == 1);
  }
  static bool b_can_stay(const MatrixProduct& p) {
    return sizeof(T) == size_of(p.dtype) && p.b_strides[1] == 1;
  }
  static void pack(const StepPacking& p, T* target) {
    copy_strided({.source = p.source,
                  .from = p.dtype,
                  .to = compute_dtype(p.dtype),
                  .source_strides = {0, p.k_stride, p.column_stride},
                  .target = target,
                  .target_strides = {0, p.step_width, 1},
                  .sizes = {1, p.k, p.columns},
                  .padded_columns = p.step_width});
  }
  // target[column][step]
  static void pack_rows(const StepPacking& p, T* target) {
    copy_strided({.source = p.source,
                  .from = p.dtype,
                  .to = compute_dtype(p.dtype),
                  .source_strides = {0, p.column_stride, 1},
                  .target = target,
                  .target_strides = {0, p.step_width, 1},
                  .sizes = {1, p.columns, p.k}});
  }
};

template <class T, class S>
void few_rows(const GemmBlock& g) {
  const MatrixProduct& p = g.product;
  run_few_rows<Reals<T>, S>(g, [&](T* target) {
    copy_strided({.source = p.a,
                  .from = p.dtype,
                  .to = compute_dtype(p.dtype),
                  .source_strides = {0, p.a_strides[0], p.a_strides[1]},
                  .target = target,
                  .target_strides = {0, p.k, 1},
                  .sizes = {1, p.m, p.k}});
  });
}

void few_rows(const GemmBlock& g) {
  switch (g.product.dtype) {
    case DType::f64: return few_rows<double, double>(g);
    case DType::f16: return few_rows<float, half>(g);
    case DType::bf16: return few_rows<float, bfloat16>(g);
    default: return few_rows<float, float>(g);
  }
}

}  // namespace

void gemm_block(const GemmBlock& g) {
  if (g.few_rows) {
    return few_rows(g);
  }
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets(f32, f64);
  if (g.product.dtype == DType::f64) {
    Block<Reals<double>>(g, f64).run();
  } else {
    Block<Reals<float>>(g, f32).run();
  }
}

void gemm_pack(const ProductPacking& p) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets(f32, f64);
  const GemmBlock block{.product = p.product};
  if (p.product.dtype == DType::f64) {
    Block<Reals<double>>(block, f64).pack_all(static_cast<double*>(p.target));
  } else {
    Block<Reals<float>>(block, f32).pack_all(static_cast<float*>(p.target));
  }
}

}  // namespace binade::kernels::BINADE_ISA
