#include <binade/kernels/softmax/softmax.h>

#include <algorithm>

namespace binade::kernels {
namespace {

void check_dim(const char* op, const View& x, int dim) {
  check(is_floating(x.dtype), op, ": got ", x.dtype, ", expected a floating dtype");
  check(dim >= 0 && dim < std::max(1, x.dim()), op, ": got dimension ", dim, ", expected 0 to ",
        std::max(1, x.dim()) - 1, " for a tensor of shape ", x.sizes);
}

void check_same(const char* op, const char* name, const View& got, const View& expected) {
  check(got.sizes == expected.sizes && got.dtype == expected.dtype, op, ": got ", name, " ",
        got.dtype, " ", got.sizes, ", expected ", expected.dtype, " ", expected.sizes);
}

}  // namespace

void check_arguments(const SoftmaxForward& a) {
  const char* op = a.log ? "log_softmax" : "softmax";
  check_dim(op, a.x, a.dim);
  check_same(op, "y", a.y, a.x);
}

void check_arguments(const SoftmaxBackward& a) {
  const char* op = a.log ? "log_softmax backward" : "softmax backward";
  check_dim(op, a.y, a.dim);
  check_same(op, "dy", a.dy, a.y);
  check_same(op, "dx", a.dx, a.y);
}

}  // namespace binade::kernels
