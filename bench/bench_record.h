// What binade bench measured: as text, as a file that can be compared later, and as a picture.
#pragma once
#include <bench/case_check.h>
#include <bench/machine_facts.h>

#include <string_view>
#include <vector>

namespace binade::bench {

struct CaseRecord {
  CaseSettings settings = {};
  std::string error = {};    // why there are no figures; empty if there are
  std::string checked = {};  // against what, before and after the samples
  double bytes = 0, flops = 0;
  int calls = 1;                        // of a sample
  std::vector<double> samples = {};     // seconds of one call, in their order
  double copy_rate = 0, flop_rate = 0;  // the ceilings beside it; 0: not measured
};

inline constexpr int kRecordVersion = 1;  // of the file

struct BenchRecord {
  MachineFacts machine = {};
  std::string cache = {};  // "cold: 64 MiB were written before each sample", "warm"
  std::vector<CaseRecord> cases = {};
};

std::string case_name(const CaseSettings& settings);  // "softmax_forward 4096x1024 f32 on cpu"
// One line: the median with its interval, and the shares of the ceilings.
std::string line_of(const CaseRecord& record);
std::string json_of(const BenchRecord& record);
std::string json_of(const MachineFacts& machine);  // one object on one line

// A file that json_of() wrote, without the cases that failed: settings and samples, the state of
// the caches, and of the machine what text or whole number decides a time. Throws Error, which
// begins with `name`, for any other text; facts that are absent stay empty.
BenchRecord parse_bench_record(const std::string& name, std::string_view json);

// The cases over their FLOPs per byte, below the measured roofs: an SVG that needs no other file.
std::string roofline_svg(const BenchRecord& record);

}  // namespace binade::bench
