// The result of checking a kernel, and its forms as text, JSON and a page.
#pragma once
#include <binade/lab/runner/found.h>

#include <set>
#include <string>
#include <vector>

namespace binade::lab {

// A group of findings of one kind, array and pair of lines.
struct Issue {
  Found found = {};
  std::string headline = {};              // "softmax.cu:25  race (write after read) on part[7]"
  std::vector<std::string> details = {};  // lines of text
  std::set<std::string> shapes = {}, inputs = {}, builds = {};
};

struct CompiledBuild {
  std::string name = {};
  double compile_seconds = 0, run_seconds = 0;
  int runs = 0;
};

// Counts of one source line, of all kernels and accesses there.
struct LineCount {
  int line = 0;
  std::string kernel = {}, code = {};  // the text of the line
  FoundAccess access = {};
};

// The accesses of one source line.
struct TogetherCount {
  std::string code = {};  // the text of the line
  FoundTogether row = {};
};

struct Bound {
  std::string gpu = {};
  double memory_us = 0;   // compulsory bytes at the memory's peak rate
  double compute_us = 0;  // the case's operations at the peak of FP32 without tensor cores
};

struct Counts {
  std::string shape = {};
  bool compared = true;              // the numbers of this shape, too
  uint64_t blocks = 0, sampled = 0;  // of the grids; sampled 0: all
  std::vector<LineCount> lines = {};
  std::vector<TogetherCount> together = {};  // barriers and warp functions
  uint64_t requested_bytes = 0;              // of global memory, scaled to all blocks
  uint64_t compulsory_bytes = 0;             // each input and output once
  double flops = 0;
  std::vector<FoundLaunch> launches = {};
  std::vector<Bound> bounds = {};
};

struct Report {
  std::string file = {}, case_name = {}, elements = {};
  std::vector<std::string> shapes = {}, inputs = {};
  std::vector<CompiledBuild> builds = {};
  std::vector<Issue> issues = {};  // gravest first
  double worst_error = 0;          // in units of what is allowed: 1 and less is right
  std::string worst_at = {};
  int runs = 0, schedules = 0;
  bool same_bits = true;  // in all schedules
  Counts counts = {};
  std::string output = {};  // what the kernel printed in its first run
  std::string hint = {};    // the lesson of the case

  // No issue is unsafe or wrong.
  bool right() const;
  // 0: right; 1: unsafe or wrong, or with `strict` any issue.
  int exit_status(bool strict) const;
};

std::string to_text(const Report& report);
std::string to_json(const Report& report);
// One page that needs no other file.
std::string to_page(const Report& report, const std::string& source);

}  // namespace binade::lab
