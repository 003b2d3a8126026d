// Two builds, or two files of measurements, compared: what is a change and what is noise.
#pragma once
#include <bench/bench_record.h>

#include <functional>
#include <string>
#include <vector>

namespace binade::bench {

struct DiffSettings {
  double minimum = 0.02;  // a change below it is none, however sure it is
  double level = 0.01;    // probability of one false change or more among all cases
};

struct CaseDiff {
  std::string name;
  double before = 0, after = 0;  // medians in seconds
  double change = 0;             // relative: 0.05 is 5% slower
  double p = 1;
  int pairs = 0;  // 0: not paired
  bool changed = false;
};

// Marks the changes: sizes of at least `minimum`, and p-values by Holm's rule (1979), so that
// `level` holds for all cases together.
void decide(std::vector<CaseDiff>& cases, const DiffSettings& settings);

// Pairs of times that were taken one after the other; ratios are compared by Wilcoxon's test.
CaseDiff diff_of_pairs(const std::string& name, const std::vector<double>& before,
                       const std::vector<double>& after);
// Times of two files, by the test of Mann and Whitney: what the machine did between them counts.
CaseDiff diff_of_samples(const CaseRecord& before, const CaseRecord& after);
// The cases that two files have in common, decided. Throws if there are none, if one file was taken
// warm and the other cold, and if samples are so few that no change could be sure.
std::vector<CaseDiff> diff_of_records(const BenchRecord& before, const BenchRecord& after,
                                      const DiffSettings& settings);
// "cpu: X, Y; threads: 2, 64": facts beside the commit that are known of both and differ; or empty.
std::string differing_facts(const BenchRecord& before, const BenchRecord& after);
std::string line_of(const CaseDiff& diff);

// Two builds in turn. Each round starts both programs anew (where memory lies differs from start to
// start, and with it the time), the first one first in every other round, and takes `samples` of
// each in turn; the medians of a round are a pair.
struct BuildDiff {
  std::string before, after;  // programs: the binade or the kernel_bench of a build
  std::vector<CaseSettings> cases = {};
  std::string device = "cpu";
  int threads = 0, rounds = 0, samples = 7;  // rounds 0: as many as the level needs, or 24
  double plant = 1;                          // slows `after` down: for tests
};
// Throws if `rounds` are so few that no change could be sure.
std::vector<CaseDiff> diff_of_builds(const BuildDiff& builds, const DiffSettings& settings);

// The program of a build folder, an installation's prefix, or a path to the program itself; throws
// if there is none.
std::string bench_program(const std::string& path);

}  // namespace binade::bench
