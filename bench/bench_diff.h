// Compares two builds, or two files of measurements, and tells changes from noise.
#pragma once
#include <bench/bench_record.h>

#include <functional>
#include <string>
#include <vector>

namespace binade::bench {

struct DiffSettings {
  double minimum = 0.02;  // smaller changes are ignored, however certain
  double level = 0.01;    // probability of at least one false change among all cases
};

struct CaseDiff {
  std::string name;
  double before = 0, after = 0;  // medians in seconds
  double change = 0;             // relative: 0.05 is 5% slower
  double p = 1;
  int pairs = 0;  // 0: not paired
  bool changed = false;
};

// Marks the cases that changed by at least `minimum` with a p-value that passes Holm's rule (1979),
// so that `level` holds for all cases together.
void decide(std::vector<CaseDiff>& cases, const DiffSettings& settings);

// Compares pairs of times taken one after the other, by Wilcoxon's test on their ratios.
CaseDiff diff_of_pairs(const std::string& name, const std::vector<double>& before,
                       const std::vector<double>& after);
// Compares the times of two files by the Mann-Whitney test; changes of the machine count, too.
CaseDiff diff_of_samples(const CaseRecord& before, const CaseRecord& after);
// Compares and decides the cases that two files share. Throws if there are none, if only one file
// was taken with warm caches, or if there are too few samples to be sure of any change.
std::vector<CaseDiff> diff_of_records(const BenchRecord& before, const BenchRecord& after,
                                      const DiffSettings& settings);
// Facts that both files have and that differ, except the commit: "cpu: X, Y; threads: 2, 64".
std::string differing_facts(const BenchRecord& before, const BenchRecord& after);
std::string line_of(const CaseDiff& diff);

// Compares two builds in turn. Each round starts both programs anew, because the placement of
// memory differs from start to start and affects the time. Each round takes `samples` of each
// program in turn, alternating which one is first; the two medians form a pair.
struct BuildDiff {
  std::string before, after;  // programs: the binade or the kernel_bench of a build
  std::vector<CaseSettings> cases = {};
  std::string device = "cpu";
  int threads = 0, rounds = 0, samples = 7;  // rounds 0: enough for the level, 24 or more
  double plant = 1;                          // slows `after` down by this factor, for tests
};
// Throws if there are too few `rounds` to be sure of any change.
std::vector<CaseDiff> diff_of_builds(const BuildDiff& builds, const DiffSettings& settings);

// Finds the program in a build folder or an installation's prefix, or takes its own path. Throws if
// there is none.
std::string bench_program(const std::string& path);

}  // namespace binade::bench
