// Checks of the kernels that walk the lines of a view.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/view.h>

namespace binade::kernels {

inline void check_dim(const char* kernel, const View& x, int dim) {
  check(dim >= 0 && dim < x.dim(), kernel, ": got dim ", dim, " of sizes ", x.sizes,
        ", expected 0 <= dim < rank");
}

inline void check_like(const char* kernel, const char* what, const View& y, const View& x) {
  check(y.sizes == x.sizes && y.dtype == x.dtype, kernel, ": got ", what, " ", y.dtype, " ",
        y.sizes, ", expected ", x.dtype, " ", x.sizes);
}

}  // namespace binade::kernels
