// The result of checking a kernel, as text, JSON and an HTML page.
#pragma once
#include <binade/lab/runner/found.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace binade::lab {

// A group of findings with the same kind, array and pair of lines.
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

// The counts of one kernel and kind of access at one source line.
struct LineCount {
  int line = 0;
  std::string kernel = {}, code = {};  // the text of the line
  FoundAccess access = {};
};

// The barriers or warp functions at one source line.
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
  bool compared = true;              // false: the results of this shape were not compared
  uint64_t blocks = 0, sampled = 0;  // blocks in all grids; sampled 0: all were counted
  std::vector<LineCount> lines = {};
  std::vector<TogetherCount> together = {};  // barriers and warp functions
  uint64_t requested_bytes = 0;              // in global memory, scaled to all blocks
  uint64_t compulsory_bytes = 0;             // each input and output counted once
  double flops = 0;
  std::vector<FoundLaunch> launches = {};
  std::vector<Bound> bounds = {};
};

// How many blocks of a launch are resident on one multiprocessor at once.
struct Occupancy {
  uint32_t threads = 0;        // threads per block
  uint64_t dynamic_bytes = 0;  // dynamic shared memory
  uint32_t blocks = 0, warps = 0, most_warps = 0;
  std::string limit = {};  // "registers", "shared memory", "warps" or "blocks"
};
// A kernel as nvcc compiles it for one GPU.
struct DeviceKernel {
  std::string gpu = {}, architecture = {}, kernel = {};
  int registers = 0;                                  // per thread
  int spilled_bytes = 0, stack_bytes = 0;             // per thread
  uint64_t shared_bytes = 0;                          // static, per block
  std::map<std::string, uint64_t> instructions = {};  // SASS counts by opcode; empty: unknown
  std::vector<Occupancy> occupancy = {};              // for each launch with the counted shape
};
struct DeviceCode {
  std::string note = {};  // one line about what is missing and why
  std::vector<DeviceKernel> kernels = {};
};

struct Report {
  std::string file = {}, case_name = {}, elements = {};
  std::vector<std::string> shapes = {}, inputs = {};
  std::vector<CompiledBuild> builds = {};
  std::vector<Issue> issues = {};  // gravest first
  double worst_error = 0;          // relative to the allowed error; at most 1 if right
  std::string worst_at = {};
  int runs = 0, schedules = 0;
  bool same_bits = true;  // all schedules gave the same bits
  Counts counts = {};
  DeviceCode device = {};
  std::string output = {};  // what the kernel printed in its first run
  std::string hint = {};    // the lesson for the case or its gravest issue

  // True if no issue is unsafe or wrong.
  bool right() const;
  // 0 if right; 1 if an issue is unsafe or wrong or, with `strict`, if there is any issue.
  int exit_status(bool strict) const;
};

std::string to_text(const Report& report);
std::string to_text(const DeviceCode& code);  // the end of the report's text
std::string to_json(const Report& report);
// Returns one page that needs no other file.
std::string to_page(const Report& report, const std::string& source);

}  // namespace binade::lab
