// The flags of the format lab, for every program that trains: simulated formats
// (core/precision/simulated_formats.h) and the updates of low weights (optim/optimizer.h).
#pragma once
#include <binade/core/precision/simulated_formats.h>
#include <binade/optim/optimizer.h>
#include <binade/train/loop/options.h>

#include <string>
#include <vector>

namespace binade::train {

struct FormatFlags {
  // --weights-format, --activations-format, --gradients-format, --states-format: a scheme
  // (core/precision/format_scheme.h) or none.
  std::string weights = "none", activations = "none", gradients = "none", states = "none";
  std::string rounding = "nearest";     // --formats-rounding: of schemes that name none
  std::string scale = "none";           // --formats-scale: of formats without blocks or own scale
  std::string sums = "none";            // --sums: an accumulation() or none
  std::string sums_of = "";             // --sums-of: AccumulationRule::op; empty: contractions
  std::string low_updates = "nearest";  // --low-updates nearest | stochastic | compensated

  // Throws if flags have no effect together.
  void check_together() const;
  FormatSchemes schemes() const;  // of weights, activations, gradients and sums
  Precision applied_to(const Precision& precision) const {
    return with_formats(precision, schemes());
  }
  // Sets the low updates, the rounding of states after each step, and no graph where delayed scales
  // forbid it.
  void apply_to(TrainerOptions& options, uint64_t seed) const;
  // The same for a loop of your own: prepare() before the first step, after_step() after each.
  void prepare(optim::Optimizer& optimizer, uint64_t seed) const;
  void after_step(const optim::Optimizer& optimizer) const;
};

// A flag: its name, where its value is, what --help says, and a check that throws.
struct FormatFlag {
  const char* name;
  std::string FormatFlags::*value;
  const char* help;
  void (*check)(const std::string& value);
};
const std::vector<FormatFlag>& format_flags();

}  // namespace binade::train
