// The results of binade bench: as text, as a file for later comparisons, and as a picture.
#pragma once
#include <bench/case_check.h>
#include <bench/machine_facts.h>

#include <string_view>
#include <vector>

namespace binade::bench {

struct CaseRecord {
  CaseSettings settings = {};
  std::string error = {};    // why there are no results; empty if there are
  std::string checked = {};  // what results were compared with, before and after
  double bytes = 0, flops = 0;
  int calls = 1;                        // calls per sample
  std::vector<double> samples = {};     // seconds per call, in the order taken
  double copy_rate = 0, flop_rate = 0;  // measured ceilings; 0: not measured
};

inline constexpr int kRecordVersion = 1;  // version of the file format

struct BenchRecord {
  MachineFacts machine = {};
  std::string cache = {};  // "cold: 64 MiB were written before each sample", "warm"
  std::vector<CaseRecord> cases = {};
};

std::string case_name(const CaseSettings& settings);  // "softmax_forward 4096x1024 f32 on cpu"
// One line with the median, its interval, and the shares of the ceilings.
std::string line_of(const CaseRecord& record);
std::string json_of(const BenchRecord& record);
std::string json_of(const MachineFacts& machine);  // one object on one line

// Reads a file that json_of() wrote, without failed cases: settings and samples, the state of the
// caches, and the facts about the machine that affect times. Throws an Error that begins with
// `name` for any other text; missing facts stay empty.
BenchRecord parse_bench_record(const std::string& name, std::string_view json);

// Draws the cases over their FLOPs per byte below the measured roofs, as one self-contained SVG.
std::string roofline_svg(const BenchRecord& record);

}  // namespace binade::bench
