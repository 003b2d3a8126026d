#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/pointwise/ternary.h>

namespace binade::kernels {

void check_arguments(const WhereForward& a) {
  check(a.condition.dtype == DType::boolean, "where: got a condition of dtype ", a.condition.dtype,
        ", expected bool");
  check(!is_absent(a.a) || !is_absent(a.b), "where: got two numbers, expected a tensor");
  for (const View* operand : {&a.a, &a.b}) {
    check(is_absent(*operand) || operand->dtype == a.y.dtype, "where: got dtypes ", operand->dtype,
          " and ", a.y.dtype, ", expected one dtype; convert with a copy");
  }
}

void check_arguments(const LerpForward& a) {
  check(is_floating(a.y.dtype), "lerp: got dtype ", a.y.dtype,
        ", expected a floating dtype (f64, f32, f16, bf16); convert with a copy");
  for (const View* operand : {&a.a, &a.b, &a.weight}) {
    const bool number = operand == &a.weight && is_absent(*operand);
    check(number || operand->dtype == a.y.dtype, "lerp: got dtypes ", operand->dtype, " and ",
          a.y.dtype, ", expected one dtype; convert with a copy");
  }
}

}  // namespace binade::kernels
