#include <binade/core/op.h>
#include <binade/core/ops.h>
#include <binade/core/precision.h>

namespace binade {

Precision Precision::checked(Policy policy, DType low) {
  check(is_half(low), "precision: got ", low, ", expected f16 or bf16");
  Precision precision;
  precision.policy = policy;
  precision.low = low;
  return precision;
}

std::string to_string(const Precision& precision) {
  constexpr const char* kName[] = {"full", "autocast", "mixed", "half"};
  std::string out = kName[precision.policy];
  return precision.policy == Precision::kFull ? out : out + " " + to_string(precision.low);
}

namespace detail {
namespace {

constexpr DType kUntouched = DType::boolean;

// f32 where f32 meets f16, so that nothing is lost; else the one floating dtype of the inputs.
DType widest_dtype(const Tensor* const* inputs, size_t count) {
  DType widest = kUntouched;
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i]->defined() && is_floating(inputs[i]->dtype())) {
      const DType dtype = inputs[i]->dtype();
      widest = widest == kUntouched || widest == dtype ? dtype : DType::f32;
    }
  }
  return widest;
}

// Kernels of wide ops, reductions, norms and losses compute in f32 inside whatever is stored, so
// only autocast, which wants f32 results there, casts their inputs.
DType wanted_dtype(OpClass op_class, const Precision& precision, const Tensor* const* inputs,
                   size_t count) {
  const bool autocast = precision.policy == Precision::kAutocast;
  switch (op_class) {
    case OpClass::movement: return kUntouched;
    case OpClass::contraction: return precision.low;
    case OpClass::pointwise: return widest_dtype(inputs, count);
    case OpClass::wide_pointwise: return autocast ? DType::f32 : widest_dtype(inputs, count);
    default: return autocast ? DType::f32 : kUntouched;
  }
}

}  // namespace

void check_devices(const Op& op, const Tensor* const* inputs, size_t count) {
  const Tensor* first = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (!inputs[i]->defined()) {
      continue;
    }
    first = first ? first : inputs[i];
    check(inputs[i]->device() == first->device(), op.name, ": got inputs on ", first->device(),
          " and ", inputs[i]->device(), ", expected one device; move them with to()");
  }
}

void enter_policy(const Op& op, const PrecisionScope& scope, const Tensor** inputs, Tensor* casts,
                  size_t count) {
  const DType wanted = wanted_dtype(op.op_class, scope.precision, inputs, count);
  if (wanted == kUntouched) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const Tensor& input = *inputs[i];
    if (input.defined() && is_floating(input.dtype()) && input.dtype() != DType::f64 &&
        input.dtype() != wanted) {
      casts[i] = cast(input, wanted);
      inputs[i] = &casts[i];
    }
  }
}

}  // namespace detail
}  // namespace binade
