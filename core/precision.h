// Precision policies: in which dtype an op runs (Micikevicius et al., "Mixed Precision Training",
// ICLR 2018; the levels are those of NVIDIA Apex).
//
//   full      O0: every op runs in the dtype of its inputs
//   autocast  O1: f32 parameters; each op casts its inputs to the dtype of its class
//   mixed     O2: f16 (or bf16) weights and activations, f32 masters; norms and losses in f32
//   half      O3: everything f16, no masters: for study
#pragma once
#include <binade/core/memory.h>
#include <binade/kernels/base/dtype.h>

#include <string>

namespace binade {

// What kind of arithmetic an op does; decides its dtype under a policy.
enum class OpClass : uint8_t {
  contraction,     // low precision in, f32 accumulation, low precision out
  pointwise,       // low precision
  wide_pointwise,  // exp, log, pow, softplus, reciprocal: f32 inside
  reduction,       // f32 inside
  norm,            // f32 inside, statistics and parameters f32
  loss,            // f32
  movement,        // no arithmetic
};

struct Precision {
  enum Policy : uint8_t { kFull, kAutocast, kMixed, kHalf };
  Policy policy = kFull;
  DType low = DType::f16;

  static Precision full() { return {}; }
  static Precision autocast(DType low) { return checked(kAutocast, low); }
  static Precision mixed(DType low) { return checked(kMixed, low); }
  static Precision half(DType low) { return checked(kHalf, low); }
  bool operator==(const Precision&) const = default;
  // Whether weights are stored in `low`, and whether f32 masters stand behind them.
  bool low_weights() const { return policy == kMixed || policy == kHalf; }
  bool masters() const { return policy == kMixed; }

 private:
  static Precision checked(Policy policy, DType low);
};

std::string to_string(const Precision& precision);  // "mixed f16"

// While one exists, ops on this thread follow the policy. Made by nn::Module::operator().
struct PrecisionScope {
  explicit PrecisionScope(Precision wanted)
      : precision(wanted), before(detail::thread_state.precision) {
    detail::thread_state.precision = precision.policy == Precision::kFull ? nullptr : this;
  }
  ~PrecisionScope() { detail::thread_state.precision = before; }
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

  Precision precision;
  const PrecisionScope* before;
};

}  // namespace binade
