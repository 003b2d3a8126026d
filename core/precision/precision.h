// Precision policies: in which dtype an op runs (Micikevicius et al., "Mixed Precision Training",
// ICLR 2018; the levels are those of NVIDIA Apex).
//
//   full      O0: every op runs in the dtype of its inputs
//   autocast  O1: f32 parameters; each op casts its inputs to the dtype of its class
//   mixed     O2: f16 (or bf16) weights and activations, f32 masters; norms and losses in f32
//   half      O3: everything f16, no masters: for study
//
// docs/op_classes.md lists every op with its class and what that means under each policy;
// core/precision/precision_rules.h has the exceptions that a user makes by op and by module path.
#pragma once
#include <binade/core/device/memory.h>
#include <binade/core/precision/op_class.h>
#include <binade/kernels/base/dtype.h>

#include <memory>
#include <string>
#include <vector>

namespace binade {

struct PrecisionRule;
class CastCache;
class PrecisionRules;
class Tensor;

// Where the result of an op that computes in f32 (wide_pointwise, reduction, norm) goes: `paper`
// stores it in the dtype of the inputs, as the paper does; `apex` returns f32. By policy: apex for
// autocast, paper for the others. Losses return f32 either way.
enum class Store : uint8_t { by_policy, paper, apex };

struct Precision {
  enum Policy : uint8_t { kFull, kAutocast, kMixed, kHalf };
  Policy policy = kFull;
  DType low = DType::f16;
  Store store = Store::by_policy;
  std::shared_ptr<const PrecisionRules> rules = {};  // null: none
  bool from_environment = false;                     // chosen by BINADE_PRECISION

  static Precision full() { return {}; }
  static Precision autocast(DType low) { return checked(kAutocast, low); }
  static Precision mixed(DType low) { return checked(kMixed, low); }
  static Precision half(DType low) { return checked(kHalf, low); }

  Precision with(Store wanted) const;
  // Exceptions, behind those it has; of several that fit an op the last one counts. An op that does
  // not exist or a dtype that is not f32, f16 or bf16 is an error.
  Precision with(const std::vector<PrecisionRule>& more) const;

  // The same policy, dtype, store and rules.
  bool operator==(const Precision& other) const;
  // Whether weights are stored in `low`, and whether f32 masters stand behind them.
  bool low_weights() const { return policy == kMixed || policy == kHalf; }
  bool masters() const { return policy == kMixed; }
  // Whether ops that compute in f32 also return it.
  bool returns_f32() const {
    return store == Store::by_policy ? policy == kAutocast : store == Store::apex;
  }
  // Whether any op may run otherwise than in the dtype of its inputs.
  bool acts() const { return policy != kFull || rules; }

 private:
  static Precision checked(Policy policy, DType low);
};

std::string to_string(const Precision& precision);  // "mixed f16", "autocast bf16, paper, 2 rules"
const char* to_string(Store store);
Store parse_store(const std::string& name);

// "fp32", "fp16", "bf16" (mixed), or a policy with a format: "autocast-fp16", "mixed-bf16",
// "half-fp16".
Precision parse_precision(const std::string& name);
// What BINADE_PRECISION says; full where it is not set. nn::Module::to(device) takes it.
Precision environment_precision();

// In which dtype an op takes its floating inputs, and why. f64 inputs stay f64.
struct Decision {
  enum Why : uint8_t { kMovement, kFullPolicy, kClass, kPromoted, kRule, kNoFloats };
  bool casts = false;  // whether inputs of another dtype than `dtype` are cast
  DType dtype = DType::f32;
  Why why = kNoFloats;
  const PrecisionRule* rule = nullptr;  // of kRule; lives as long as the precision
};
std::string to_string(const Decision& decision, const Precision& precision, OpClass op_class);

// For an op of this name and class in a module (core/observe/label.h), of whose floating inputs
// `widest` is the dtype, f32 where f16 meets bf16 or f32; `any` is false where it has none.
Decision decide(const char* op, OpClass op_class, uint32_t module, const Precision& precision,
                DType widest, bool any = true);

// While one exists, ops on this thread follow the policy. Made by nn::Module::operator().
//
// The outermost scope keeps the casts of parameters: each is cast once while the scope lives, not
// once per use. What is kept has no history, so a cast made without recording serves a recording
// forward, which records its own; an in-place change of the parameter makes it cast again.
struct PrecisionScope {
  explicit PrecisionScope(Precision wanted)
      : precision(std::move(wanted)),
        before(detail::thread_state.precision),
        root(before ? before->root : this) {
    detail::thread_state.precision = precision.acts() ? this : nullptr;
  }
  ~PrecisionScope() {
    detail::thread_state.precision = before;
    if (cache) [[unlikely]] {
      drop_cache();
    }
  }
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

  Precision precision;
  const PrecisionScope* before;
  const PrecisionScope* root;
  mutable CastCache* cache = nullptr;  // of the root; made at the first cast of a parameter

 private:
  void drop_cache() noexcept;
};

// Casts that the outermost scope of this thread keeps now.
struct CastCacheStats {
  int64_t entries = 0, bytes = 0;
};
CastCacheStats cast_cache_stats();

}  // namespace binade
