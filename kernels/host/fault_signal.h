// Faults of the processor while a kernel runs (SIGSEGV, SIGBUS, SIGFPE) as errors of the kernel: an
// access to memory that is not mapped names array, index, block, thread and line, and the process
// goes on. On x86-64 and aarch64; not in the asan build, where AddressSanitizer reports faults.
#pragma once

namespace binade::kernels::host {

// Takes the signals until the end of the process; a fault outside of kernels goes to the handler
// that was there before. Each OS thread that launches kernels calls it; it does not serve the
// further threads of Options::os_threads.
void catch_fault_signals();

// Ends a thread that uses so much processor time without a step (CheckOptions::step_limit) as
// endless: a compiler gives a loop without a body no step. Uses SIGVTALRM and the virtual timer of
// the process; 0 stops it. Needs catch_fault_signals() first, and does nothing where that does
// nothing.
void end_idle_loops_after(double seconds);

}  // namespace binade::kernels::host
