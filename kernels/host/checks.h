// Options of the executor beyond options(): its checks, and how a launch goes on after a finding.
// They have their own header, because kernels do not read it.
#pragma once
#include <binade/kernels/host/kernel_calls.h>

#include <type_traits>

namespace binade::kernels::host {

struct CheckOptions {
  bool collect_findings = false;  // go on after findings (findings.h) instead of throwing
  // An access to memory that is in no named range (named_ranges.h), no shared memory and no static
  // variable of the program is out of bounds (race build).
  bool only_named_memory = false;
  // An access of host code to a named range is a finding, unless the range is host_visible. It sees
  // only sources that are compiled like kernels, in the race build.
  bool host_accesses = false;
  // Steps of one thread after which it is ended as endless; 0 for no limit. A step is an access of
  // memory in the race build, and a basic block in kernels compiled with
  // -fsanitize-coverage=trace-pc. Threads with a limit also yield now and then, so that a thread
  // can wait for a write of another one.
  uint64_t step_limit = 0;
  // Run only this many blocks of a grid, evenly spread; 0 for all. For counting accesses.
  uint64_t sampled_blocks = 0;
  // In the schedule forward: go on to the next warp at every wait, and take blocks from both halves
  // of the grid by turns.
  bool interleaved = false;
};
// Change it only while no kernel runs.
CheckOptions& check_options();

// A closure that runs one thread of a kernel and holds the kernel's arguments. A GPU does not
// access memory to read them, so the checks and the access report leave these reads out.
class KernelThread {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, KernelThread>>>
  KernelThread(F closure)  // NOLINT: a closure is one
      : closure_(new F(static_cast<F&&>(closure))),
        body_([](void* f) { (*static_cast<F*>(f))(); }),
        delete_([](void* f) { delete static_cast<F*>(f); }),
        bytes_(sizeof(F)) {}
  ~KernelThread() { delete_(closure_); }
  KernelThread(const KernelThread&) = delete;
  KernelThread& operator=(const KernelThread&) = delete;
  // Runs it once per thread of every block.
  void run(const Grid& grid) const;

 private:
  void* closure_;
  Body body_, delete_;
  size_t bytes_;
};

}  // namespace binade::kernels::host
