// Whether a kernel computes the same bits in every schedule.
#pragma once
#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/findings.h>

#include <functional>
#include <string>
#include <vector>

namespace binade::kernels::host {

// Forward, reverse, interleaved, and `random` random ones, with late and early copies by turns.
std::vector<Options> all_schedules(const Options& base, int random = 3);
std::string to_string(Schedule schedule);

// Memory whose bits must agree, such as the outputs of a launch.
struct Compared {
  const void* begin;
  size_t bytes;
};

struct ScheduleReport {
  int runs = 0;
  // One for each array and line that wrote differing elements last, kind nondeterministic; `first`
  // is the last writer in the schedule that differs, `second` the one in the first schedule (both
  // known in the race build only). They are in findings() too.
  std::vector<Finding> differences;
};
// Calls `run` once in each schedule (it must set its inputs and outputs anew) and compares the
// memory with the bits of the first schedule.
ScheduleReport compare_schedules(const std::vector<Options>& schedules,
                                 const std::vector<Compared>& outputs,
                                 const std::function<void()>& run);

}  // namespace binade::kernels::host
