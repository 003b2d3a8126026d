// BINADE_KERNEL: declares a kernel for every backend and the chooser that picks one by device.
//
//   struct SoftmaxForward { const View& x; const View& y; };   // one argument struct per kernel
//   BINADE_KERNEL(softmax_forward, SoftmaxForward, y)          // in kernels/softmax/softmax.h
//   void cpu::softmax_forward(const SoftmaxForward& a) {...}   // in
//   kernels/softmax/softmax_cpu.cpp
//
// The third argument names the view whose device decides. Callers write
// kernels::softmax_forward({.x = x, .y = y}). cuda:: functions are in kernels/softmax/softmax.cu,
// for CUDA devices and for the emulated one alike; in a build without either they are never
// referenced.
#pragma once
#include <binade/build_config.h>
#include <binade/kernels/base/view.h>

#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/kernel_call.h>
#endif

namespace binade::kernels {

#ifdef BINADE_WITH_CUDA
inline constexpr bool kWithCuda = true;
#else
inline constexpr bool kWithCuda = false;
#endif

}  // namespace binade::kernels

#ifdef BINADE_WITH_CUDA
#define BINADE_CUDA_KERNEL(name, a, decisive) \
  const KernelCall call(#name, (a).decisive); \
  cuda::name(a)
#else
#define BINADE_CUDA_KERNEL(name, a, decisive) \
  fail(#name ": got device ", (a).decisive.device, ", but this build has only the CPU")
#endif

#define BINADE_KERNEL(name, Arguments, decisive) \
  namespace cpu {                                \
  void name(const Arguments& a);                 \
  }                                              \
  namespace cuda {                               \
  void name(const Arguments& a);                 \
  }                                              \
  inline void name(const Arguments& a) {         \
    if (a.decisive.device.is_cpu()) [[likely]] { \
      cpu::name(a);                              \
    } else {                                     \
      BINADE_CUDA_KERNEL(name, a, decisive);     \
    }                                            \
  }
