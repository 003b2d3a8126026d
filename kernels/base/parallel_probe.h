// A hook that is told how many threads the jobs of parallel_for use.
#pragma once

namespace binade::kernels {

// Called on the thread that starts a job, with the number of threads that may take part, and at its
// end with 1. null: nobody is told.
using ParallelProbe = void (*)(int threads) noexcept;
void set_parallel_probe(ParallelProbe probe);

}  // namespace binade::kernels
