// The arrays of an optimizer step, as its kernels read and write them: values are read from the
// master if there is one, and written to both.
#pragma once
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels::dev {

template <class T>
struct Arrays {
  using C = Compute<T>;
  T* param;
  C* master;  // or null
  const T* grad;
};

template <class T>
Arrays<T> arrays(const View& param, const View& master, const View& grad) {
  return {param.as<T>(), master.as<Compute<T>>(), grad.as<T>()};
}

template <class T, int kWidth>
__device__ __forceinline__ void load_parameters(const Arrays<T>& a, int64_t at,
                                                Compute<T> (&p)[kWidth]) {
  if (a.master) {
    dev::load_as(a.master + at, p);
  } else {
    dev::load_as(a.param + at, p);
  }
}

template <class T, int kWidth>
__device__ __forceinline__ void store_parameters(const Arrays<T>& a, int64_t at,
                                                 const Compute<T> (&p)[kWidth]) {
  if (a.master) {
    dev::store_from(a.master + at, p);
  }
  dev::store_from(a.param + at, p);
}

}  // namespace binade::kernels::dev
