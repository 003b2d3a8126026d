// Eigen on one matrix of a batch at a time. Every matrix is copied to aligned memory before Eigen
// sees it: Eigen's loops depend on the alignment, and so would the last bits. Factorisations whose
// templates take long to compile exist only in double; f32 uses them too, and gets more accurate
// results.
#pragma once
#define EIGEN_DONT_PARALLELIZE  // threads come from parallel_for
#define EIGEN_MPL2_ONLY
#include <binade/core/linalg/host_internal.h>
#include <binade/kernels/base/parallel.h>

#include <Eigen/Core>
#include <algorithm>
#include <atomic>

namespace binade::linalg::host {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using Rows = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// Matrix i of the batch.
template <class T>
Rows<T> at(const Batch& b, int64_t i) {
  return Rows<T>(static_cast<T*>(b.data) + i * b.rows * b.cols, b.rows, b.cols);
}

template <class T>
Matrix<double> in_double(const Batch& b, int64_t i) {
  return at<T>(b, i).template cast<double>();
}
template <class T, class M>
void store(const Batch& b, int64_t i, const M& values) {
  at<T>(b, i) = values.template cast<T>();
}

template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  return dtype == DType::f64 ? f(Type<double>{}) : f(Type<float>{});
}

// Calls body(i) -> bool for every matrix, on several threads if `flops`, the operations per matrix,
// justify it. Returns the first i for which body returned false, or kAllDone.
template <class F>
int64_t for_each(int64_t count, double flops, F&& body) {
  constexpr double kGrainFlops = 2e5;
  std::atomic<int64_t> first{count};
  const auto grain = static_cast<int64_t>(
      std::clamp(kGrainFlops / (flops + 1), 1.0, static_cast<double>(std::max<int64_t>(count, 1))));
  kernels::parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!body(i)) {
        int64_t known = first.load();
        while (i < known && !first.compare_exchange_weak(known, i)) {
        }
      }
    }
  });
  return first == count ? kAllDone : first.load();
}

inline double cubic(int64_t a, int64_t b, int64_t c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

}  // namespace binade::linalg::host
