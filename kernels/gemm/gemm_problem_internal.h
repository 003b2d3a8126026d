// A matrix product on the CPU as its parts see it: gemm_cpu.cpp chooses how it is computed,
// gemm_region.cpp computes it. Internal to kernels/gemm.
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/epilogue.h>

namespace binade::kernels {

struct GemmProblem {
  MatrixProduct product = {};  // of the first matrix of the batch
  int64_t batch = 1;
  int64_t a_batch = 0, b_batch = 0;  // strides
  std::byte* y = nullptr;
  int64_t y_strides[3] = {};  // batch, row, column
  TileEpilogue epilogue = {};
  Activation activation = Activation::none;
  std::byte* slope = nullptr;         // has the layout of epilogue.operand
  std::byte* row_sums = nullptr;      // [m], compute dtype, zeros
  bool transposed = false;            // computes y^T: the bias is per row
  bool pairs = false;                 // kernels/gemm/gemm_pairs_internal.h
  bool few_rows = false;              // kernels/gemm/gemm_rows_internal.h
  const std::byte* kept_b = nullptr;  // GemmBlock

  DType dtype() const { return product.dtype; }
  int64_t size() const { return static_cast<int64_t>(size_of(dtype())); }
  int64_t compute_size() const { return static_cast<int64_t>(size_of(compute_dtype(dtype()))); }
  int64_t steps() const { return pairs ? (product.k + 1) / 2 : product.k; }  // of k
  bool is_one_block() const { return steps() <= kPackDepth; }                // of k
  bool is_gelu() const {
    return activation == Activation::gelu || activation == Activation::gelu_tanh;
  }
  // True if tiles store y. False if the sums must stay in the compute dtype for a later step.
  bool direct() const {
    const bool rounds = is_one_block() && !transposed && !is_gelu();
    return y_strides[2] == 1 && (compute_dtype(dtype()) == dtype() || rounds);
  }
};

// Computes the product on the threads of the pool.
void multiply_on_threads(const GemmProblem& p);

}  // namespace binade::kernels
