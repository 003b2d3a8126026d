// Precision search: the fewest modules that must stay in f32 so that a step's loss differs from
// that of f64 by no more than a given amount.
//
//   const train::FoundPrecision found = train::find_f32(step, {.loss_difference = 1e-4});
//   write_file_durably("rules.json", train::to_rules(found));   // train_classifier --overrides
//
// The budgets of shadow() (train/precision/shadow.h) say which module adds most to the difference.
// Sets of modules are tried in that order and measured: the step runs with these modules in f32,
// weights included. Differences are root mean squares over the batches, because errors within one
// batch may cancel by chance. The rules are exceptions to the model's own policy.
#pragma once
#include <binade/core/precision/precision_rules.h>
#include <binade/train/precision/shadow.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::train {

struct SearchOptions {
  double loss_difference = 0;  // the largest one that is allowed, above 0
  int random_sets = 5;         // of as many modules, measured for comparison
  uint64_t seed = 0;           // of their choice
  // At most so many sets with one module fewer are measured, to show that none of them is enough.
  int64_t most_sets = 64;
};

struct TriedModules {
  std::vector<std::string> modules = {};
  double predicted = 0, measured = 0;  // differences; infinite if a loss is not finite
};

struct FoundPrecision {
  double wanted = 0;
  TriedModules none = {};  // no module in f32
  TriedModules chosen = {};
  TriedModules all = {};  // every module in f32
  bool reached = false;   // `chosen` is within the difference; else it is the closest set
  // True if every set with one module fewer was measured, and none is within the difference.
  bool is_fewest = false;
  std::vector<TriedModules> random = {};   // sets of as many modules
  std::vector<TriedModules> budgets = {};  // each module alone: what it adds, by size
  int64_t batches = 0;
  Precision precision = {};  // the model's, with the rules
};

// Measures on the batches of `step`. Throws if the model has no precision policy, since the rules
// are exceptions to one.
FoundPrecision find_f32(const StepToDiagnose& step, const SearchOptions& options);

std::string to_text(const FoundPrecision& found);
// A file for read_precision() (core/precision/precision_rules.h).
std::string to_rules(const FoundPrecision& found);

}  // namespace binade::train
