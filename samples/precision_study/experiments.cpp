#include "experiment.h"

namespace study {

const std::vector<const Experiment*>& experiments() {
  static const std::vector<const Experiment*> all = {
      &kThreeCurves,  &kGradientRange, &kSwallowedUpdates, &kLossScales,  &kUnscaledRun,
      &kAccumulation, &kReductions,    &kPolicies,         &kPairedSeeds, &kLostOrHarmful};
  return all;
}

}  // namespace study
