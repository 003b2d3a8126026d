// Instruction sets, chosen at run time. A source named *_isa.cpp is compiled three times (baseline
// x86-64-v2, avx2 + fma + f16c, avx512 f/bw/dq/vl) with BINADE_ISA set to the namespace of that
// build; BINADE_ISA_KERNEL declares the three and a chooser. A source named *_avx512_bf16.cpp is
// compiled once, for that set, and so is *_amx_bf16.cpp; BINADE_AVX512_BF16_KERNEL and
// BINADE_AMX_BF16_KERNEL declare what they define.
//
// Rules for these files: everything lives in namespace binade::kernels::BINADE_ISA, helpers in
// headers that they share are in an anonymous namespace or in that namespace too, and they
// instantiate no std:: template that could be emitted out of line: the linker keeps one copy of an
// inline function for the whole program, and that copy must not need AVX-512.
#pragma once
#include <cstdint>

namespace binade::kernels {

// avx512_bf16 is avx512 with products of bf16 (kernels/gemm/gemm_pairs_internal.h). amx_bf16 has
// these products by AMX; it exists only if the system lets this process use the AMX registers.
// Everything else of both runs as avx512.
enum class Isa : uint8_t { baseline, avx2, avx512, avx512_bf16, amx_bf16 };

// The widest set of this machine, or a narrower one where
// BINADE_FORCE_ISA=baseline|avx2|avx512|avx512_bf16 asks for it.
Isa isa();
const char* to_string(Isa isa);

}  // namespace binade::kernels

// CMake's BINADE_ISAS=baseline (and a build for sanitizers: the sets differ in compiler flags, not
// in source) compiles the baseline alone: BINADE_BASELINE_ONLY. BINADE_ISAS=native leaves out what
// this machine does not choose by itself: BINADE_WITHOUT_AVX2 or BINADE_WITHOUT_AVX512.
#ifdef BINADE_BASELINE_ONLY
#define BINADE_ISA_KERNEL(name, ...)                     \
  namespace baseline {                                   \
  void name(__VA_ARGS__);                                \
  }                                                      \
  template <class... Args>                               \
  inline void name##_best(Args&&... args) {              \
    return baseline::name(static_cast<Args&&>(args)...); \
  }
#elif defined(BINADE_WITHOUT_AVX512) || defined(BINADE_WITHOUT_AVX2)
#ifdef BINADE_WITHOUT_AVX512
#define BINADE_WIDER avx2
#else
#define BINADE_WIDER avx512
#endif
#define BINADE_ISA_KERNEL(name, ...)                                                     \
  namespace baseline {                                                                   \
  void name(__VA_ARGS__);                                                                \
  }                                                                                      \
  namespace BINADE_WIDER {                                                               \
  void name(__VA_ARGS__);                                                                \
  }                                                                                      \
  template <class... Args>                                                               \
  inline void name##_best(Args&&... args) {                                              \
    return isa() >= Isa::BINADE_WIDER ? BINADE_WIDER::name(static_cast<Args&&>(args)...) \
                                      : baseline::name(static_cast<Args&&>(args)...);    \
  }
#else
#define BINADE_ISA_KERNEL(name, ...)                                       \
  namespace baseline {                                                     \
  void name(__VA_ARGS__);                                                  \
  }                                                                        \
  namespace avx2 {                                                         \
  void name(__VA_ARGS__);                                                  \
  }                                                                        \
  namespace avx512 {                                                       \
  void name(__VA_ARGS__);                                                  \
  }                                                                        \
  template <class... Args>                                                 \
  inline void name##_best(Args&&... args) {                                \
    switch (isa()) {                                                       \
      case Isa::amx_bf16:                                                  \
      case Isa::avx512_bf16:                                               \
      case Isa::avx512: return avx512::name(static_cast<Args&&>(args)...); \
      case Isa::avx2: return avx2::name(static_cast<Args&&>(args)...);     \
      default: return baseline::name(static_cast<Args&&>(args)...);        \
    }                                                                      \
  }
#endif

// REQUIRES: call avx512_bf16::name only if isa() >= Isa::avx512_bf16; likewise amx_bf16.
#if defined(BINADE_BASELINE_ONLY) || defined(BINADE_WITHOUT_AVX512)
#define BINADE_AVX512_BF16_KERNEL(name, ...) \
  namespace avx512_bf16 {                    \
  inline void name(__VA_ARGS__) {}           \
  }
#define BINADE_AMX_BF16_KERNEL(name, ...) \
  namespace amx_bf16 {                    \
  inline void name(__VA_ARGS__) {}        \
  }
#else
#define BINADE_AVX512_BF16_KERNEL(name, ...) \
  namespace avx512_bf16 {                    \
  void name(__VA_ARGS__);                    \
  }
#define BINADE_AMX_BF16_KERNEL(name, ...) \
  namespace amx_bf16 {                    \
  void name(__VA_ARGS__);                 \
  }
#endif
