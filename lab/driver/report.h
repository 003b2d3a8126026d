// The result of checking a kernel, and its forms as text, JSON and a page.
#pragma once
#include <binade/lab/runner/found.h>

#include <map>
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

// The blocks of a launch that are resident on one multiprocessor at once.
struct Occupancy {
  uint32_t threads = 0;        // of a block
  uint64_t dynamic_bytes = 0;  // of shared memory
  uint32_t blocks = 0, warps = 0, most_warps = 0;
  std::string limit = {};  // "registers", "shared memory", "warps" or "blocks"
};
// One kernel as nvcc compiles it for one GPU.
struct DeviceKernel {
  std::string gpu = {}, architecture = {}, kernel = {};
  int registers = 0;                                  // of a thread
  int spilled_bytes = 0, stack_bytes = 0;             // of a thread
  uint64_t shared_bytes = 0;                          // static, of a block
  std::map<std::string, uint64_t> instructions = {};  // of SASS, by name: "LDG"; empty: not known
  std::vector<Occupancy> occupancy = {};              // by launch of the counted shape
};
struct DeviceCode {
  std::string note = {};  // what is missing, and why: one line
  std::vector<DeviceKernel> kernels = {};
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
  DeviceCode device = {};
  std::string output = {};  // what the kernel printed in its first run
  std::string hint = {};    // the lesson of the case

  // No issue is unsafe or wrong.
  bool right() const;
  // 0: right; 1: unsafe or wrong, or with `strict` any issue.
  int exit_status(bool strict) const;
};

std::string to_text(const Report& report);
std::string to_text(const DeviceCode& code);  // which the text of the report ends in
std::string to_json(const Report& report);
// One page that needs no other file.
std::string to_page(const Report& report, const std::string& source);

}  // namespace binade::lab
