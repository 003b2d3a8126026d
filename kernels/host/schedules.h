// Checks whether a kernel computes the same bits in every schedule.
#pragma once
#include <binade/kernels/host/checks.h>
#include <binade/kernels/host/findings.h>

#include <functional>
#include <string>
#include <vector>

namespace binade::kernels::host {

// An order of blocks and threads, with or without late copies.
struct ScheduleOptions {
  Schedule schedule = Schedule::forward;
  uint64_t seed = 1;         // of a random one
  bool interleaved = false;  // of forward: CheckOptions::interleaved
  bool late_async = true;
};
std::string to_string(const ScheduleOptions& schedule);  // "reverse", "random 2", ...
// Forward, reverse, interleaved, and `random` random ones, with late and early copies by turns.
std::vector<ScheduleOptions> all_schedules(int random = 3);

// Sets the schedule in options() and check_options(), and restores both.
class WithSchedule {
 public:
  explicit WithSchedule(const ScheduleOptions& schedule);
  ~WithSchedule();
  WithSchedule(const WithSchedule&) = delete;
  WithSchedule& operator=(const WithSchedule&) = delete;

 private:
  Options options_;
  CheckOptions checks_;
};

// Memory whose bits must agree, such as the outputs of a launch.
struct Compared {
  const void* begin;
  size_t bytes;
};

struct ScheduleReport {
  int runs = 0;
  // One finding of kind nondeterministic for each array and line that wrote differing elements
  // last. `first` is the last writer in the schedule that differs; the race build knows it, and
  // with CheckOptions::collect_findings also its block and thread. They are in findings() too.
  std::vector<Finding> differences;
};
// Calls `run` once in each schedule (it must set its inputs and outputs anew) and compares the
// memory with the bits of the first schedule.
ScheduleReport compare_schedules(const std::vector<ScheduleOptions>& schedules,
                                 const std::vector<Compared>& outputs,
                                 const std::function<void()>& run);

}  // namespace binade::kernels::host
