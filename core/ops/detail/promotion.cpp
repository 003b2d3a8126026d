#include <binade/core/autograd/op.h>
#include <binade/core/ops/detail/promotion_internal.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

namespace binade::detail {

DType promoted_dtype(const char* op, DType a, DType b) {
  check(a == b || !is_floating(a) || !is_floating(b), op, ": got dtypes ", a, " and ", b,
        ", expected equal ones; convert one with to()");
  return std::min(a, b);  // the enumerators go from wide to narrow, floating ones first
}

DType promoted_with_number(const char* op, DType dtype, double value) {
  if (std::isinf(value) || value != std::floor(value)) {
    return DType::f32;
  }
  if (dtype == DType::boolean && value != 0 && value != 1) {
    dtype = DType::i64;
  }
  check_number(op, value, dtype);
  return dtype;
}

WithNumber with_number(const char* op, const Tensor& x, double value) {
  const DType wide = x.dtype() == DType::boolean ? DType::i64 : x.dtype();
  const DType dtype = promoted_dtype(op, wide, value);
  return {cast(x, dtype), full({}, value, dtype, x.device())};
}

// Converts the inputs to one dtype (core/autograd/op.h).
void promote(const Op& op, std::span<const Tensor*> inputs, Casts& casts) {
  for (const Tensor* input : inputs) {
    check_defined(op.name, *input);
  }
  DType dtype = inputs[0]->dtype();
  for (const Tensor* input : inputs.subspan(1)) {
    dtype = promoted_dtype(op.name, dtype, input->dtype());
  }
  for (const Tensor*& input : inputs) {
    if (input->dtype() != dtype) {
      input = casts.keep(cast(*input, dtype));
    }
  }
}

}  // namespace binade::detail
