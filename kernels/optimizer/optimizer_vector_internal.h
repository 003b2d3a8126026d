// Helpers of the range kernels of the optimizers. Include only from *_isa.cpp, like
// vector_math_internal.h.
#pragma once
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/optimizer/optimizer_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// Parameter vectors: read from the master if there is one, and written to both.
template <class T>
struct Parameters {
  using C = Compute<T>;
  T* param;
  C* master;

  explicit Parameters(const StepRange& range)
      : param(static_cast<T*>(range.param)), master(static_cast<C*>(range.master)) {}

  template <bool kPart>
  BINADE_INLINE Vector<C> read(int64_t i, int64_t n) const {
    return master ? load_some<kPart>(master + i, n) : load_some<kPart>(param + i, n);
  }
  template <bool kPart>
  BINADE_INLINE void write(int64_t i, Vector<C> p, int64_t n) const {
    if (master) {
      store_some<kPart>(master + i, p, n);
    }
    store_some<kPart>(param + i, p, n);
  }
};

// Adds the squares of v to sums, in double.
BINADE_INLINE void add_squares(Vector<double>& sums, Vector<double> v) { sums += v * v; }
BINADE_INLINE void add_squares(Vector<double>& sums, Vector<float> v) {
  typedef float HalfVector __attribute__((vector_size(kVectorBytes / 2)));
  HalfVector halves[2];
  __builtin_memcpy(halves, &v, sizeof v);
  const Vector<double> low = __builtin_convertvector(halves[0], Vector<double>);
  const Vector<double> high = __builtin_convertvector(halves[1], Vector<double>);
  sums += low * low;
  sums += high * high;
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
