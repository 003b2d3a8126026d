// A hook that is told how many threads the jobs of parallel_for use.
#pragma once

namespace binade::kernels {

// Called on the thread that starts a job, with the number of threads that may take part, and at the
// end of the job with 1. null: no hook.
using ParallelProbe = void (*)(int threads) noexcept;
void set_parallel_probe(ParallelProbe probe);

}  // namespace binade::kernels
