// What a child process of the lab runs, and what it returns. The parent writes a problem to a file;
// the child appends each record to another file at once, so that its records survive if it dies.
#pragma once
#include <binade/lab/source/translate.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::lab {

// One argument of one run.
struct ProblemArgument {
  std::string name = {};
  Passing passing = Passing::value;
  Element element = Element::f32;
  bool is_output = false;                   // has no values when solve() begins
  int64_t count = 0;                        // elements of an array
  int64_t row_elements = 0, row_pitch = 0;  // rows of an array with a leading dimension, else 0
  std::string bytes = {};                   // the elements of an input, or the value
};

// A call of solve(), repeated in each schedule.
struct ProblemRun {
  std::string shape = {}, inputs = {};
  std::vector<ProblemArgument> arguments = {};
  int32_t schedules = 1;        // 1: forward; 2: also reverse; 3: all
  bool counts = false;          // counts accesses, in the race build
  bool writers = false;         // says who wrote the outputs, in the race build
  uint64_t sampled_blocks = 0;  // blocks counted in each launch; 0: all
  bool goes_on = false;         // runs in the process of the run before it and sees its state
  uint32_t part = 0;            // index of the child process that runs it
};

struct Problem {
  uint64_t step_limit = 0;
  std::vector<ProblemRun> runs = {};
};

std::string to_bytes(const Problem& problem);
Problem problem_from(std::string_view bytes);

enum class RecordKind : uint8_t {
  begin,     // run
  outputs,   // run, schedule, name, bytes: after each schedule
  failed,    // run, schedule, text: solve() threw
  finding,   // run, Found (found.h)
  early,     // the same, sent at its first occurrence
  count,     // run, FoundAccess
  together,  // run, FoundTogether
  launch,    // run, FoundLaunch
  number,    // run, FoundNumber
  writers,   // run, FoundWriters: after the first schedule, in the race build
  end,       // run
};

// A record: its kind, its run, and the fields listed in RecordKind.
struct Record {
  RecordKind kind = RecordKind::begin;
  uint32_t run = 0;
  std::string payload = {};
};
// All complete records; an incomplete one at the end is left out.
std::vector<Record> records_from(std::string_view bytes);
std::string to_bytes(const Record& record);

}  // namespace binade::lab
