// The argument checks of gemm that every backend makes, and the checked problem.
#pragma once
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

// Strides of batch, row and column. The stride of a dimension of size 1 or an absent batch is 1.
struct MatrixStrides {
  int64_t batch = 1, row = 1, column = 1;
};
MatrixStrides matrix_strides(const View& view);

}  // namespace binade::kernels
