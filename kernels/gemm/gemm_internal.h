// Checks of the arguments of gemm that every backend makes, and the problem that is left after
// them.
#pragma once
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

// Strides of batch, row and column; of dimensions of size 1 (and of an absent batch) 1.
struct MatrixStrides {
  int64_t batch = 1, row = 1, column = 1;
};
MatrixStrides matrix_strides(const View& view);

}  // namespace binade::kernels
