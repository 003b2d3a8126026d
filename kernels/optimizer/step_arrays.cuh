// The arrays of an optimizer step, as its kernels read and write them: values are read from the
// master if there is one, and written to both.
#pragma once
#include <binade/kernels/optimizer/low_update.h>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels::dev {

template <class T>
struct Arrays {
  using C = Compute<T>;
  T* param;
  C* master;  // or null
  const T* grad;
  T* compensation;  // of compensated updates, or null
  LowUpdates how;
  uint64_t seed;
  int64_t first, update;  // as in LowUpdate
};

template <class T>
Arrays<T> arrays(const View& param, const View& master, const View& grad, const LowUpdate& low) {
  return {param.as<T>(), master.as<Compute<T>>(),
          grad.as<T>(),  low.compensation.as<T>(),
          low.how,       low.seed,
          low.first,     low.update};
}

template <class T, int kWidth>
__device__ __forceinline__ void load_parameters(const Arrays<T>& a, int64_t at,
                                                Compute<T> (&p)[kWidth]) {
  if (a.master) {
    dev::load_as(a.master + at, p);
  } else {
    dev::load_as(a.param + at, p);
    if constexpr (sizeof(T) == 2) {
      if (a.compensation) {
        const Vector<T, kWidth> rest = load_vector<kWidth>(a.compensation + at);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          p[i] += static_cast<Compute<T>>(rest[i]);
        }
      }
    }
  }
}

// Rounds values into f16 or bf16 parameters without a master. update: the number of the step's
// update where the device knows it, else below 0.
template <class T, int kWidth>
__device__ __forceinline__ void store_low(const Arrays<T>& a, int64_t at,
                                          const Compute<T> (&p)[kWidth], int64_t update) {
  Compute<T> kept[kWidth], rest[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const T low = a.how == LowUpdates::stochastic
                      ? stochastic_value<T>(p[i], a.seed, a.first + at + i,
                                            static_cast<uint64_t>(update < 0 ? a.update : update))
                      : static_cast<T>(p[i]);
    kept[i] = static_cast<Compute<T>>(low);
    rest[i] = p[i] - kept[i];
  }
  if (a.compensation) {
    dev::store_from(a.compensation + at, rest);
  }
  dev::store_from(a.param + at, kept);
}

template <class T, int kWidth>
__device__ __forceinline__ void store_parameters(const Arrays<T>& a, int64_t at,
                                                 const Compute<T> (&p)[kWidth], int64_t update) {
  if constexpr (sizeof(T) == 2) {
    if (a.how != LowUpdates::nearest) {
      store_low(a, at, p, update);
      return;
    }
  }
  if (a.master) {
    dev::store_from(a.master + at, p);
  }
  dev::store_from(a.param + at, p);
}

}  // namespace binade::kernels::dev
