// Precision policies: in which dtype an op runs (Micikevicius et al., "Mixed Precision Training",
// ICLR 2018; the levels are those of NVIDIA Apex).
//
//   full      O0: every op runs in the dtype of its inputs
//   autocast  O1: f32 parameters; each op casts its inputs to the dtype of its class
//   mixed     O2: f16 (or bf16) weights and activations, f32 masters; norms and losses in f32
//   half      O3: everything f16, no masters: for study
//
// docs/op_classes.md lists every op with its class and its dtype under each policy. Users can make
// exceptions by op and by module path (core/precision/precision_rules.h).
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

// The dtype in which an op that computes in f32 (wide_pointwise, reduction, norm) stores its
// result. `paper` stores it in the dtype of the inputs, as the paper does; `apex` returns f32. By
// policy: apex for autocast, paper for the others. Losses return f32 in both.
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
  // Adds exceptions after the existing ones; if several match an op, the last one counts. An op
  // that does not exist, or a dtype other than f32, f16 and bf16, is an error.
  Precision with(const std::vector<PrecisionRule>& more) const;

  // True for the same policy, dtype, store and rules.
  bool operator==(const Precision& other) const;
  // low_weights(): weights are stored in `low`. masters(): they have f32 masters.
  bool low_weights() const { return policy == kMixed || policy == kHalf; }
  bool masters() const { return policy == kMixed; }
  // True if ops that compute in f32 also return f32.
  bool returns_f32() const {
    return store == Store::by_policy ? policy == kAutocast : store == Store::apex;
  }
  // True if any op may run in another dtype than its inputs have.
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
// The value of BINADE_PRECISION; full if it is not set. nn::Module::to(device) uses it.
Precision environment_precision();

// The dtype in which an op takes its floating inputs, and why. f64 inputs stay f64.
struct Decision {
  enum Why : uint8_t { kMovement, kFullPolicy, kClass, kPromoted, kRule, kNoFloats };
  bool casts = false;  // whether inputs of another dtype than `dtype` are cast
  DType dtype = DType::f32;
  Why why = kNoFloats;
  const PrecisionRule* rule = nullptr;  // of kRule; lives as long as the precision
};
std::string to_string(const Decision& decision, const Precision& precision, OpClass op_class);

// Decides for an op of this name and class in a module (core/observe/label.h). `widest` is the
// dtype of its floating inputs, or f32 if f16 meets bf16 or f32; `any` is false if it has no
// floating input.
Decision decide(const char* op, OpClass op_class, uint32_t module, const Precision& precision,
                DType widest, bool any = true);

// While one exists, ops on this thread follow the policy. nn::Module::operator() creates it.
//
// The outermost scope caches casts of parameters: each is cast once per scope, not once per use. A
// cached cast has no history, so a cast made without recording can serve a recording forward, which
// records its own node; an in-place change of the parameter makes the next use cast again.
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
  mutable CastCache* cache = nullptr;  // of the root; created at the first cast of a parameter

 private:
  void drop_cache() noexcept;
};

// The casts that the outermost scope of this thread caches now.
struct CastCacheStats {
  int64_t entries = 0, bytes = 0;
};
CastCacheStats cast_cache_stats();

}  // namespace binade
