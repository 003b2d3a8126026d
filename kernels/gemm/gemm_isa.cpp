// Blocks of matrix products of real numbers: f16 and bf16 are converted to f32 while they are
// packed.
#include <binade/kernels/gemm/gemm_block_internal.h>

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

}  // namespace

void gemm_block(const GemmBlock& g) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets(f32, f64);
  if (g.product.dtype == DType::f64) {
    Block<Reals<double>>(g, f64).run();
  } else {
    Block<Reals<float>>(g, f32).run();
  }
}

}  // namespace binade::kernels::BINADE_ISA
