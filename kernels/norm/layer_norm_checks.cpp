#include <binade/kernels/norm/layer_norm.h>

namespace binade::kernels {
namespace {

void check_input(const char* op, const View& x) {
  check(is_floating(x.dtype) && x.dim() == 2, op, ": got x ", x.dtype, " ", x.sizes,
        ", expected floating [rows, cols]");
  check(x.size(1) > 0 || x.size(0) == 0, op, ": got x ", x.sizes, ", expected a column or more");
}

void check_like(const char* op, const char* name, const View& view, const View& x) {
  check(view.sizes == x.sizes && view.dtype == x.dtype, op, ": got ", name, " ", view.dtype, " ",
        view.sizes, ", expected ", x.dtype, " ", x.sizes, " like x");
}

// A vector with one element per row (dim 0) or column (dim 1) of x.
void check_vector(const char* op, const char* name, const View& view, const View& x, int dim) {
  const DType compute = compute_dtype(x.dtype);
  check(view.dtype == compute && view.sizes == Dims{x.size(dim)} && view.contiguous, op, ": got ",
        name, " ", view.dtype, " ", view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous ", compute, " [", x.size(dim), "], one per ",
        dim == 0 ? "row" : "column");
}

void check_optional(const char* op, const char* name, const View& view, const View& x, int dim) {
  if (view) {
    check_vector(op, name, view, x, dim);
  }
}

void check_bias(const char* op, const View& bias, const View& mean, const View& x) {
  check(!bias || mean || x.size(0) == 0, op,
        ": got a bias without a mean, expected none: RMS norm has no bias");
}

}  // namespace

void check_arguments(const LayerNormForward& a) {
  const char* op = "layer_norm";
  check_input(op, a.x);
  check_like(op, "y", a.y, a.x);
  check_optional(op, "weight", a.weight, a.x, 1);
  check_optional(op, "bias", a.bias, a.x, 1);
  check_optional(op, "mean", a.mean, a.x, 0);
  check_vector(op, "rstd", a.rstd, a.x, 0);
  check_bias(op, a.bias, a.mean, a.x);
}

void check_arguments(const LayerNormBackward& a) {
  const char* op = "layer_norm backward";
  check_input(op, a.x);
  check_like(op, "dy", a.dy, a.x);
  if (a.dx) {
    check_like(op, "dx", a.dx, a.x);
  }
  check_optional(op, "weight", a.weight, a.x, 1);
  check_optional(op, "mean", a.mean, a.x, 0);
  check_vector(op, "rstd", a.rstd, a.x, 0);
  check_optional(op, "dweight", a.dweight, a.x, 1);
  check_optional(op, "dbias", a.dbias, a.x, 1);
  check_bias(op, a.dbias, a.mean, a.x);
}

}  // namespace binade::kernels
