#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/cast_internal.h>
#include <binade/core/precision/cast_cache_internal.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/kernels/copy/copy.h>

#include <array>

namespace binade {

Precision Precision::checked(Policy policy, DType low) {
  check(is_half(low), "precision: got ", low, ", expected f16 or bf16");
  Precision precision;
  precision.policy = policy;
  precision.low = low;
  return precision;
}

Precision Precision::with(Store wanted) const {
  Precision out = *this;
  out.store = wanted;
  return out;
}

Precision Precision::with(const std::vector<PrecisionRule>& more) const {
  Precision out = *this;
  std::vector<PrecisionRule> all = rules ? rules->list() : std::vector<PrecisionRule>{};
  all.insert(all.end(), more.begin(), more.end());
  auto formats = rules ? rules->formats() : nullptr;
  out.rules = all.empty() && !formats
                  ? nullptr
                  : std::make_shared<const PrecisionRules>(std::move(all), std::move(formats));
  return out;
}

bool Precision::operator==(const Precision& other) const {
  const bool same_rules =
      rules == other.rules || (rules && other.rules && rules->list() == other.rules->list() &&
                               formats_of(*this) == formats_of(other));
  return policy == other.policy && (policy == kFull || low == other.low) &&
         returns_f32() == other.returns_f32() && same_rules;
}

namespace {

constexpr DType kNoDType = DType::boolean;  // no dtype requested

// The decision of the policy for a class, without its rules.
Decision decide_by_class(OpClass op_class, const Precision& precision, DType widest) {
  const Decision promoted{true, widest, Decision::kPromoted, nullptr};
  const bool returns_f32 = precision.returns_f32();
  switch (precision.policy) {
    case Precision::kFull: return {true, widest, Decision::kFullPolicy, nullptr};
    case Precision::kHalf: break;
    default:
      if (op_class == OpClass::contraction) {
        return {true, precision.low, Decision::kClass, nullptr};
      }
      if (op_class == OpClass::pointwise || !returns_f32) {
        return promoted;
      }
  }
  const bool narrow = op_class == OpClass::contraction || op_class == OpClass::pointwise;
  const DType dtype =
      precision.policy == Precision::kHalf && (narrow || !returns_f32) ? precision.low : DType::f32;
  return {true, dtype, Decision::kClass, nullptr};
}

}  // namespace

Decision decide(const char* op, OpClass op_class, uint32_t module, const Precision& precision,
                DType widest, bool any) {
  if (op_class == OpClass::movement) {
    return {.why = Decision::kMovement};
  }
  if (!any) {
    return {};
  }
  if (precision.rules) {
    if (const PrecisionRule* rule = precision.rules->find(op, op_class, module)) {
      return {true, rule->dtype, Decision::kRule, rule};
    }
  }
  return decide_by_class(op_class, precision, widest);
}

namespace detail {
namespace {

// f32 if the inputs have different floating dtypes, so that no digits are lost; else their dtype.
DType widest_dtype(const Tensor* const* inputs, size_t count) {
  DType widest = kNoDType;
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i]->defined() && is_floating(inputs[i]->dtype())) {
      const DType dtype = inputs[i]->dtype();
      widest = widest == kNoDType || widest == dtype ? dtype : DType::f32;
    }
  }
  return widest;
}

// A cast that the policy inserts. It is recorded anew for every use, whether made or cached.
Tensor policy_cast(const PrecisionScope& scope, const Tensor& x, DType dtype,
                   PolicyEvent::Cast& done) {
  static constexpr Op kOp{"policy_cast", OpClass::movement, true};
  const bool keeps = CastCache::wants(x);
  CastCache*& cache = scope.root->cache;
  Tensor value = keeps && cache ? cache->find(x, dtype) : Tensor();
  done = value.defined() ? PolicyEvent::Cast::cached : PolicyEvent::Cast::made;
  if (!value.defined()) {
    value = empty_like(x, dtype);
    kernels::copy({.x = x, .y = value});
    if (keeps) {
      cache = cache ? cache : new CastCache;
      cache->keep(x, value);
    }
  }
  return kOp.record({x}, value, save(), [from = x.dtype()](const Tensor& dy, Needs needs) -> Grads {
    return cast_gradient(dy, from, needs);
  });
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

struct Casts::Cast {
  Tensor value;
  Cast* before;
};

const Tensor* Casts::keep(Tensor cast) {
  last_ = new (allocate(sizeof(Cast))) Cast{std::move(cast), last_};
  return &last_->value;
}

void Casts::release(Cast* last) noexcept {
  while (last) {
    Cast* before = last->before;
    last->~Cast();
    binade::release(std::exchange(last, before), sizeof(Cast));
  }
}

void enter_policy(const Op& op, const PrecisionScope& scope, std::span<const Tensor*> inputs,
                  Casts& casts) {
  const size_t count = inputs.size();
  const DType widest = widest_dtype(inputs.data(), count);
  const Decision decision =
      decide(op.name, op.op_class, thread_state.label, scope.precision, widest, widest != kNoDType);
  constexpr size_t kMost = 16;
  std::array<PolicyEvent::Cast, kMost> done{};
  std::array<const Tensor*, kMost> given{};
  check(count <= kMost, op.name, ": got ", count, " inputs, expected at most ", kMost);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& input = *inputs[i];
    given[i] = inputs[i];
    if (decision.casts && input.defined() && is_floating(input.dtype()) &&
        input.dtype() != DType::f64 && input.dtype() != decision.dtype) {
      inputs[i] = casts.keep(policy_cast(scope, input, decision.dtype, done[i]));
    }
  }
  if (thread_state.observers) [[unlikely]] {
    notify_policy({op, thread_state.label, scope.precision, decision,
                   std::span(given.data(), count), std::span(done.data(), count)});
  }
  const PrecisionRules* rules = scope.precision.rules.get();
  if (rules && rules->formats() && op.op_class == OpClass::contraction) {
    const SimulatedFormats& formats = *rules->formats();
    const int64_t call = formats.begin_call(op, scope);
    for (size_t i = 0; i < count; ++i) {
      Tensor rounded = formats.rounded_input({op, call, i}, *given[i], *inputs[i]);
      if (rounded.defined()) {
        inputs[i] = casts.keep(std::move(rounded));
      }
    }
  }
}

std::vector<Tensor> enter_joined(const Op& op, const std::vector<Tensor>& inputs) {
  begin_op(op);
  const PrecisionScope* scope = thread_state.precision;
  std::vector<const Tensor*> given;
  for (const Tensor& input : inputs) {
    given.push_back(&input);
  }
  check_devices(op, given.data(), given.size());
  const DType widest = widest_dtype(given.data(), given.size());
  if (!scope || widest == kNoDType) {
    return inputs;
  }
  std::vector<Tensor> joined = inputs;
  std::vector<PolicyEvent::Cast> done(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    if (input.defined() && is_floating(input.dtype()) && input.dtype() != DType::f64 &&
        input.dtype() != widest) {
      joined[i] = policy_cast(*scope, input, widest, done[i]);
    }
  }
  if (thread_state.observers) [[unlikely]] {
    notify_policy({op,
                   thread_state.label,
                   scope->precision,
                   {true, widest, Decision::kPromoted, nullptr},
                   given,
                   done});
  }
  return joined;
}

}  // namespace detail
}  // namespace binade
