#include <binade/kernels/copy/combine.h>

namespace binade::kernels {
namespace {

void check_operand(const Combine& a, const View& operand, const char* name) {
  const bool wider = is_half(a.x.dtype) && operand.dtype == DType::f32;
  check(operand.contiguous && operand.numel == a.x.numel && (operand.dtype == a.x.dtype || wider),
        "combine: got ", name, " ", operand.dtype, " of ", operand.numel, " elements",
        operand.contiguous ? "" : " (not contiguous)", ", expected ", a.x.numel,
        " contiguous elements of ", a.x.dtype, is_half(a.x.dtype) ? " or f32" : "");
}

}  // namespace

void check_arguments(const Combine& a) {
  const DType dtype = a.x.dtype;
  const bool integer = dtype == DType::i64 || dtype == DType::i32;
  check(is_floating(dtype) || integer, "combine: got dtype ", dtype,
        ", expected f64, f32, f16, bf16, i64 or i32");
  check(a.x.contiguous, "combine: got x that is not contiguous");
  check(!integer || a.before == 1, "combine: integers are divided after the sum only");
  if (a.received) {
    check_operand(a, a.received, "received");
  }
  check_operand(a, a.y, "y");
}

}  // namespace binade::kernels
