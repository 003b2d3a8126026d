#include <binade/kernels/sort/cumprod.h>

namespace binade::kernels {
namespace {

void check_dim(const char* kernel, const View& x, int dim) {
  check(dim >= 0 && dim < x.dim(), kernel, ": got dim ", dim, " of sizes ", x.sizes,
        ", expected 0 <= dim < rank");
}

void check_like(const char* kernel, const char* what, const View& y, const View& x) {
  check(y.sizes == x.sizes && y.dtype == x.dtype, kernel, ": got ", what, " ", y.dtype, " ",
        y.sizes, ", expected ", x.dtype, " ", x.sizes);
}

}  // namespace

void check_arguments(const CumulativeProduct& a) {
  check_dim("cumprod_forward", a.x, a.dim);
  check(is_floating(a.x.dtype) || a.x.dtype == DType::i64 || a.x.dtype == DType::i32,
        "cumprod_forward: got dtype ", a.x.dtype, ", expected a floating dtype, i64 or i32");
  check_like("cumprod_forward", "a result", a.y, a.x);
}

void check_arguments(const CumulativeProductBackward& a) {
  check_dim("cumprod_backward", a.x, a.dim);
  check(is_floating(a.x.dtype), "cumprod_backward: got dtype ", a.x.dtype,
        ", expected a floating dtype");
  check_like("cumprod_backward", "dy", a.dy, a.x);
  check_like("cumprod_backward", "dx", a.dx, a.x);
}

}  // namespace binade::kernels
