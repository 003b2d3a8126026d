// BINADE_PROVIDED_KERNEL: BINADE_KERNEL (kernel.h) for an operation that a user's kernel may
// compute (kernels/user/user_kernels.h). Beside the functions of BINADE_KERNEL the family defines
//
//   bool run_by_user(const SoftmaxForward& a) {...}   // softmax_user.cpp; false: run our kernel
//
// It is called only while there are kernels of users, or before the environment was read.
#pragma once
#include <binade/kernels/base/kernel.h>

#include <atomic>

namespace binade::kernels::detail {

enum UserKernelState : uint8_t { kNoUserKernels, kSomeUserKernels, kUserKernelsUnread };
extern std::atomic<uint8_t> user_kernel_state;

}  // namespace binade::kernels::detail

#define BINADE_PROVIDED_KERNEL(name, Arguments, decisive)                              \
  void check_arguments(const Arguments& a);                                            \
  bool run_by_user(const Arguments& a);                                                \
  namespace cpu {                                                                      \
  void name(const Arguments& a);                                                       \
  }                                                                                    \
  namespace cuda {                                                                     \
  void name(const Arguments& a);                                                       \
  }                                                                                    \
  inline void name(const Arguments& a) {                                               \
    if (detail::user_kernel_state.load(std::memory_order_relaxed) != 0) [[unlikely]] { \
      if (run_by_user(a)) {                                                            \
        return;                                                                        \
      }                                                                                \
    }                                                                                  \
    if (a.decisive.device.is_cpu()) [[likely]] {                                       \
      cpu::name(a);                                                                    \
    } else {                                                                           \
      BINADE_CUDA_KERNEL(name, a, decisive);                                           \
    }                                                                                  \
  }
