// Faults of the processor while a kernel runs (SIGSEGV, SIGBUS, SIGFPE) as errors of the kernel: an
// access to memory that is not mapped names array, index, block, thread and line, and the process
// goes on. On x86-64 and aarch64; not in the asan build, where AddressSanitizer reports faults.
#pragma once

namespace binade::kernels::host {

// Handles the signals until the end of the process; a fault outside of kernels goes to the earlier
// handler. Each OS thread that launches kernels calls it; it does not serve the additional threads
// of Options::os_threads.
void catch_fault_signals();

// Ends a thread as endless if it uses `seconds` of processor time without a step
// (CheckOptions::step_limit), since a loop without a body has no steps. Uses SIGVTALRM and the
// virtual timer of the process; 0 stops it. Call catch_fault_signals() first. Does nothing where
// that does nothing.
void end_idle_loops_after(double seconds);

}  // namespace binade::kernels::host
