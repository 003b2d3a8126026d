// BINADE_KERNEL: declares a kernel for every backend, the check of its arguments, and the chooser
// that picks a backend by device.
//
//   struct SoftmaxForward { const View& x; const View& y; };  // one argument struct per kernel
//   BINADE_KERNEL(softmax_forward, SoftmaxForward, y)         // softmax.h
//   void check_arguments(const SoftmaxForward& a) {...}       // softmax_checks.cpp
//   void cpu::softmax_forward(const SoftmaxForward& a) {...}  // softmax_cpu.cpp
//   void cuda::softmax_forward(const SoftmaxForward& a) {...} // softmax.cu
//
// all in kernels/<family>. The third argument names the view whose device decides. Callers write
// kernels::softmax_forward({.x = x, .y = y}). The cuda:: functions serve CUDA devices and the
// emulated one; in a build without either they are never referenced. Every backend begins with
// check_arguments(a); a kernel that accepts anything defines none.
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
  void check_arguments(const Arguments& a);      \
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
