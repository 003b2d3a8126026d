#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/pointwise/pointwise_internal.h>

namespace binade::kernels {
namespace {

void check_floating(const char* kernel, const char* op, DType dtype) {
  check(is_floating(dtype), kernel, " ", op, ": got dtype ", dtype,
        ", expected a floating dtype (f64, f32, f16, bf16); convert with a copy");
}

void check_dtypes(const char* kernel, const char* op, const View& a, const View& b) {
  check(a.dtype == b.dtype, kernel, " ", op, ": got dtypes ", a.dtype, " and ", b.dtype,
        ", expected one dtype; convert with a copy");
}

void check_same(const char* kernel, const char* op, const View& a, const View& b) {
  check_dtypes(kernel, op, a, b);
  check(a.sizes == b.sizes, kernel, " ", op, ": got sizes ", a.sizes, " and ", b.sizes,
        ", expected equal sizes");
}

bool reads_values(Binary op) { return op != Binary::add && op != Binary::sub; }

}  // namespace

void check_arguments(const UnaryForward& a) {
  check_floating("unary_forward", to_string(a.op), a.y.dtype);
  check_same("unary_forward", to_string(a.op), a.x, a.y);
}

void check_arguments(const UnaryBackward& a) {
  check_floating("unary_backward", to_string(a.op), a.dx.dtype);
  check_same("unary_backward", to_string(a.op), a.saved, a.dx);
  check_same("unary_backward", to_string(a.op), a.dy, a.dx);
}

void check_arguments(const BinaryForward& a) {
  const DType dtype = a.y.dtype;
  check_dtypes("binary_forward", to_string(a.op), a.a, a.y);
  check_dtypes("binary_forward", to_string(a.op), a.b, a.y);
  if (!is_floating(dtype)) [[unlikely]] {
    check(dtype != DType::boolean && takes_integers(a.op), "binary_forward ", to_string(a.op),
          ": got dtype ", dtype, ", expected a floating dtype",
          takes_integers(a.op) ? ", i64, i32 or u8" : "", "; convert with a copy");
  }
}

BinarySaved checked_operands(const BinaryBackward& a) {
  const char* name = to_string(a.op);
  check_floating("binary_backward", name, a.dy.dtype);
  const View& saved_a = reads_values(a.op) ? a.a : a.dy;
  const View& saved_b = reads_values(a.op) ? a.b : a.dy;
  check_dtypes("binary_backward", name, saved_a, a.dy);
  check_dtypes("binary_backward", name, saved_b, a.dy);
  for (const View* out : {&a.da, &a.db}) {
    if (*out) {
      check_same("binary_backward", name, *out, a.dy);
    }
  }
  return {saved_a, saved_b};
}

void check_arguments(const CompareForward& a) {
  if (!is_absent(a.b)) {
    check_dtypes("compare_forward", to_string(a.op), a.a, a.b);
  }
  check(a.y.dtype == DType::boolean, "compare_forward ", to_string(a.op),
        ": got a result of dtype ", a.y.dtype, ", expected bool");
}

}  // namespace binade::kernels
