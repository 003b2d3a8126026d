// BINADE_KERNEL: declares a kernel for every backend and the chooser that picks one by device.
//
//   struct SoftmaxForward { const View& x; const View& y; };   // one argument struct per kernel
//   BINADE_KERNEL(softmax_forward, SoftmaxForward, y)          // in kernels/softmax.h
//   void cpu::softmax_forward(const SoftmaxForward& a) {...}   // in kernels/softmax_cpu.cpp
//
// The third argument names the view whose device decides. Callers write
// kernels::softmax_forward({.x = x, .y = y}). In a build without CUDA the cuda:: function is never
// referenced, so it needs no definition.
#pragma once
#include <binade/kernels/base/view.h>

namespace binade::kernels {

#ifdef BINADE_WITH_CUDA
inline constexpr bool kWithCuda = true;
#else
inline constexpr bool kWithCuda = false;
#endif

}  // namespace binade::kernels

#define BINADE_KERNEL(name, Arguments, decisive)                                           \
  namespace cpu {                                                                          \
  void name(const Arguments& a);                                                           \
  }                                                                                        \
  namespace cuda {                                                                         \
  void name(const Arguments& a);                                                           \
  }                                                                                        \
  inline void name(const Arguments& a) {                                                   \
    if (a.decisive.device.is_cpu()) [[likely]] {                                           \
      cpu::name(a);                                                                        \
    } else if constexpr (kWithCuda) {                                                      \
      cuda::name(a);                                                                       \
    } else {                                                                               \
      fail(#name ": got device ", a.decisive.device, ", but this build has only the CPU"); \
    }                                                                                      \
  }
