// Include this in every kernel source: the CUDA language, the primitives (namespace dev) and
// launch(), either from nvcc or for host execution (BINADE_HOST_EXECUTION, set by the build, not
// guessed).
//
// Rules for kernels (a test checks them, host execution catches the rest):
//  - launch() is the only way to start a kernel; shared_mem<Smem>() the only way to shared memory,
//    one struct per kernel; inline PTX only in primitives.cuh.
//  - half and bfloat16 are storage: load, convert to float, compute, round once.
//  - Every thread of a block reaches every __syncthreads(): no early return before one.
// - Each warp collective has one call site per warp; no thread polls memory.
//  - No float atomics: sums that several blocks share go through two stages in a fixed order.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/kernel.h>
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/primitives.h>
#else
#include <binade/kernels/cuda/primitives.cuh>
#endif
#include <binade/kernels/cuda/launch.cuh>
