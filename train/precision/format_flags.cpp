#include <binade/optim/state_formats.h>
#include <binade/train/precision/format_flags.h>

namespace binade::train {
namespace {

constexpr const char* kNoFormat = "none";

void check_scheme(const std::string& value) {
  if (value != kNoFormat) {
    (void)format_scheme(value);
  }
}

// Throws for sums that cannot be simulated.
AccumulationRule sums_rule(const std::string& sums, const std::string& of) {
  AccumulationRule rule{.op = of, .sum = accumulation(sums)};
  (void)with_formats(Precision::full(), {.sums = {rule}});
  return rule;
}

LowUpdates low_updates_of(const std::string& name) {
  check(name == "nearest" || name == "stochastic" || name == "compensated", "low updates: got '",
        name, "', expected nearest, stochastic or compensated");
  return name == "nearest"      ? LowUpdates::nearest
         : name == "stochastic" ? LowUpdates::stochastic
                                : LowUpdates::compensated;
}

// The scheme of a flag with the shared rounding and scale.
std::optional<FormatScheme> scheme_of(const std::string& value, const FormatFlags& flags) {
  if (value == kNoFormat) {
    return std::nullopt;
  }
  FormatScheme scheme = format_scheme(value);
  if (scheme.rounding == Rounding::nearest_even && value.find("/nearest") == std::string::npos) {
    scheme.rounding = parse_rounding(flags.rounding);
  }
  if (scheme.scaling == FormatScaling::none && value.find("/none") == std::string::npos) {
    const Overflow before = scheme.format.overflow;
    set_scaling(scheme, parse_format_scaling(flags.scale));
    if (value.find("overflow=") != std::string::npos) {
      scheme.format.overflow = before;
    }
  }
  return scheme;
}

}  // namespace

const std::vector<FormatFlag>& format_flags() {
  static const std::vector<FormatFlag> all = {
      {"--weights-format", &FormatFlags::weights,
       "simulate weights of matrix products and convolutions in this format: e4m3fn, mxfp8, nvfp4, "
       "bf16/stochastic, ... (binade format NAME shows one)",
       check_scheme},
      {"--activations-format", &FormatFlags::activations, "the same of their other inputs",
       check_scheme},
      {"--gradients-format", &FormatFlags::gradients, "the same of the gradients of their results",
       check_scheme},
      {"--states-format", &FormatFlags::states, "the same of the optimizer's moments",
       check_scheme},
      {"--formats-rounding", &FormatFlags::rounding,
       "of simulated formats: nearest, toward-zero or stochastic",
       [](const std::string& value) { (void)parse_rounding(value); }},
      {"--formats-scale", &FormatFlags::scale,
       "of simulated formats without blocks: none, tensor or delayed",
       [](const std::string& value) { (void)parse_format_scaling(value); }},
      {"--sums", &FormatFlags::sums,
       "simulate the sums of matrix products, forward and backward: f16, f16/chunks=64, "
       "bf16/kahan, f16/pairwise, ...",
       [](const std::string& value) {
         if (value != kNoFormat) {
           (void)accumulation(value);
         }
       }},
      {"--sums-of", &FormatFlags::sums_of,
       "the op of --sums, or a pattern: linear, matmul, *mm, sum, mean; without it every "
       "contraction",
       [](const std::string& value) { (void)sums_rule("f32", value); }},
      {"--low-updates", &FormatFlags::low_updates,
       "of f16 and bf16 weights without masters (--precision half-bf16): nearest, stochastic or "
       "compensated",
       [](const std::string& value) { (void)low_updates_of(value); }}};
  return all;
}

FormatSchemes FormatFlags::schemes() const {
  return {.weights = scheme_of(weights, *this),
          .activations = scheme_of(activations, *this),
          .gradients = scheme_of(gradients, *this),
          .sums = sums == kNoFormat ? std::vector<AccumulationRule>()
                                    : std::vector{sums_rule(sums, sums_of)}};
}

void FormatFlags::check_together() const {
  const FormatSchemes all = schemes();
  const bool any = all.weights || all.activations || all.gradients || states != kNoFormat;
  check(any || rounding == "nearest", "--formats-rounding: has no effect without a format");
  check(any || scale == "none", "--formats-scale: has no effect without a format");
  check(sums != kNoFormat || sums_of.empty(), "--sums-of: has no effect without --sums");
  const auto own = scheme_of(states, *this);
  check(!own || own->scaling != FormatScaling::delayed,
        "--states-format: got a delayed scale, expected none or tensor: --states-format ", states,
        "/tensor");
}

void FormatFlags::apply_to(TrainerOptions& options, uint64_t seed) const {
  options.low_updates = low_updates_of(low_updates);
  options.low_updates_seed = seed;
  if (SimulatedFormats(schemes()).has_delayed()) {
    options.graph = StepGraph::off;
  }
  if (states != kNoFormat) {
    options.callbacks.push_back({.step = [flags = *this](const RunView& run) {
      for (const optim::Optimizer* optimizer : run.optimizers) {
        flags.after_step(*optimizer);
      }
    }});
  }
}

void FormatFlags::prepare(optim::Optimizer& optimizer, uint64_t seed) const {
  if (const LowUpdates how = low_updates_of(low_updates); how != LowUpdates::nearest) {
    optimizer.set_low_updates(how, seed);
  }
}

void FormatFlags::after_step(const optim::Optimizer& optimizer) const {
  if (const auto scheme = scheme_of(states, *this)) {
    optim::round_states(optimizer, *scheme);
  }
}

}  // namespace binade::train
