// Runs cases one after another; each is checked, timed, and checked again.
#pragma once
#include <bench/bench_record.h>

#include <functional>

namespace binade::bench {

struct RunSettings {
  std::vector<CaseSettings> cases = {};
  int samples = 30;
  bool warm = false;        // false: caches are flushed before each sample of one call
  bool check_only = false;  // takes no samples
};

// Parses "softmax_forward" (default size) or "softmax_forward:64x20000". Throws for anything else.
CaseSettings parse_case_word(const std::string& word);

// Calls `done` after each case. A case that is wrong or throws has an error and no samples.
BenchRecord run_cases(const RunSettings& settings, Device device,
                      const std::function<void(const CaseRecord&)>& done);

}  // namespace binade::bench
