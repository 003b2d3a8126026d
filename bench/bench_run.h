// Measures cases one after another: checked, timed, checked again.
#pragma once
#include <bench/bench_record.h>

#include <functional>

namespace binade::bench {

struct RunSettings {
  std::vector<CaseSettings> cases = {};
  int samples = 30;
  bool warm = false;        // else the caches are emptied before each sample, which is one call
  bool check_only = false;  // no samples
};

// "softmax_forward" with the default size, or "softmax_forward:64x20000". Throws for anything else.
CaseSettings parse_case_word(const std::string& word);

// `done` gets each case when it ends. A case that is wrong, or throws, has an error and no samples.
BenchRecord run_cases(const RunSettings& settings, Device device,
                      const std::function<void(const CaseRecord&)>& done);

}  // namespace binade::bench
