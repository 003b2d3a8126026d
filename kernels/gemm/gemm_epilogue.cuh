// The epilogue of tiles on a GPU: y = activation(y + sum + bias), rounded once; or, where k is
// split over blocks, the sums are written unchanged to this split's part of a workspace.
#pragma once
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/pointwise/pointwise_functors.h>
#include <binade/kernels/gemm/gemm_loader.cuh>

namespace binade::kernels {

// An Epilogue as kernels read it.
template <class T>
struct DeviceEpilogue {
  const T* bias = nullptr;
  int64_t bias_stride = 1;
  bool accumulate = false;
  Activation activation = Activation::none;

  DeviceEpilogue() = default;
  explicit DeviceEpilogue(const Epilogue& e)
      : bias(e.bias.as<T>()),
        bias_stride(e.bias ? e.bias.strides[0] : 0),
        accumulate(e.accumulate),
        activation(e.activation) {}
  // The epilogue of columns [column, ...).
  __device__ __forceinline__ DeviceEpilogue from(int64_t column) const {
    DeviceEpilogue result = *this;
    result.bias = bias ? bias + column * bias_stride : nullptr;
    return result;
  }
};

// Stores runs of N neighbours of a row through the epilogue; elements outside [rows, columns] are
// dropped.
template <class T>
struct TileStore {
  using C = Compute<T>;

  T* y = nullptr;
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 1;
  DeviceEpilogue<T> epilogue = {};
  bool bias_per_row = false;  // y is stored transposed
  bool vector = false;        // column_stride is 1 and 16-byte runs are aligned
  C* partial = nullptr;       // [rows, columns], row-major

  template <int N>
  __device__ __forceinline__ void operator()(int64_t row, int64_t column, C (&values)[N]) const {
    if (row >= rows || column >= columns) {
      return;
    }
    const int count = clamp_count(columns - column, N);
    if (partial) {
      store(partial + row * columns + column, 1, values, count, columns % N == 0);
      return;
    }
    T* target = y + row * row_stride + column * column_stride;
    const auto& [bias, bias_stride, accumulate, activation] = epilogue;
    if (accumulate) {
      add(target, column_stride, values, count, vector);
    }
    if (bias && bias_per_row) {
      const C term = static_cast<C>(bias[row * bias_stride]);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] += term;
      }
    } else if (bias) {
      add(bias + column * bias_stride, bias_stride, values, count, false);
    }
    if (activation == Activation::relu) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] = functor::Relu::forward(values[i], C(0), C(0));
      }
    } else if (activation == Activation::gelu_tanh) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] = functor::GeluTanh::forward(values[i], C(0), C(0));
      }
    }
    store(target, column_stride, values, count, vector);
  }

 private:
  template <int N>
  static __device__ __forceinline__ void add(const T* source, int64_t stride, C (&values)[N],
                                             int count, bool vector) {
    if (vector && count == N) {
      C more[N];
      dev::load_as(source, more);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] += more[i];
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < count) {
        values[i] += static_cast<C>(source[i * stride]);
      }
    }
  }
  template <int N, class To>
  static __device__ __forceinline__ void store(To* target, int64_t stride, const C (&values)[N],
                                               int count, bool vector) {
    if (vector && count == N) {
      dev::store_from(target, values);
      return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < count) {
        target[i * stride] = static_cast<To>(values[i]);
      }
    }
  }
};

}  // namespace binade::kernels
