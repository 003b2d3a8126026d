// An experiment: a claim of Micikevicius et al., "Mixed Precision Training" (ICLR 2018), and a
// function that tests it at small scale.
#pragma once
#include "report.h"
#include "tasks.h"

namespace study {

struct Lab {
  Data& data;
  // True if the mechanism of the claim is switched off: the checks must then fail.
  bool broken = false;
};

struct Experiment {
  const char* name;  // of --only and --break
  const char* title;
  const char* section;    // of the paper
  const char* claim;      // of the paper
  const char* method;     // of the experiment
  const char* mechanism;  // --break switches it off
  void (*run)(const Lab&, Report&);
};

// One in each file; experiments.cpp has the list.
extern const Experiment kThreeCurves, kGradientRange, kSwallowedUpdates, kLossScales, kUnscaledRun,
    kAccumulation, kReductions, kPolicies, kPairedSeeds, kLostOrHarmful;
const std::vector<const Experiment*>& experiments();

}  // namespace study
