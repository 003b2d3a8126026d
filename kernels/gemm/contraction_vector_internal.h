// Vectors of one instruction set for the contraction kernels: loads that widen f16 and bf16 to
// float, stores that round once, partial forms that touch only n elements, and a register
// transpose. Only *_isa.cpp files may include it (rules: kernels/base/isa.h). Of the three headers
// below only the one for the instruction set in use has content.
#pragma once
#include <binade/kernels/base/register_transpose_internal.h>
#include <binade/kernels/gemm/contraction_vector_avx2_internal.h>
#include <binade/kernels/gemm/contraction_vector_avx512_internal.h>
#include <binade/kernels/gemm/contraction_vector_baseline_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

BINADE_INLINE Vector<float> load(const half* p) { return load_narrow(p); }
BINADE_INLINE Vector<float> load(const bfloat16* p) { return load_narrow(p); }
BINADE_INLINE Vector<float> load(const half* p, int n) { return load_narrow(p, n); }
BINADE_INLINE Vector<float> load(const bfloat16* p, int n) { return load_narrow(p, n); }
BINADE_INLINE void store(half* p, Vector<float> v) { store_narrow(p, v); }
BINADE_INLINE void store(bfloat16* p, Vector<float> v) { store_narrow(p, v); }
BINADE_INLINE void store(half* p, Vector<float> v, int n) { store_narrow(p, v, n); }
BINADE_INLINE void store(bfloat16* p, Vector<float> v, int n) { store_narrow(p, v, n); }

// r[i][j] <-> r[j][i].
template <class T>
BINADE_INLINE void transpose(Vector<T> (&r)[kLanes<T>]) {
  transpose_registers(r);
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
