// The fiber executor: runs a kernel's threads as fibers of the calling OS thread, block after
// block. A thread runs until it blocks in a barrier or a warp collective; then the schedule picks
// the next one. Whatever CUDA leaves undefined is an error here that names kernel, block, thread,
// source file and line. docs/host-execution.md explains its use.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/host/kernel_calls.h>

namespace binade::kernels::host {

// The initial value of options(); throws Error if a variable has an invalid value.
Options options_from_environment();

// A kernel broke a rule of CUDA.
class KernelError : public Error {
 public:
  using Error::Error;
};
[[noreturn]] void fail_kernel(std::string message);

// True if this build has the check.
bool has_race_detector();
bool has_address_sanitizer();

}  // namespace binade::kernels::host
