// The comparison of a user's result with ours: element by element, in double, on the host.
#include <binade/kernels/user/user_kernels_internal.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/user_call.h>
#endif

#include <algorithm>
#include <cmath>
#include <vector>

namespace binade::kernels {
namespace {

// The elements of a view with any strides, row-major.
std::vector<double> values_on_host(const View& view) {
  std::vector<double> values;
  if (view.numel == 0) {
    return values;
  }
  int64_t low = 0, high = 0;  // the first and the last element in memory
  for (int d = 0; d < view.dim(); ++d) {
    const int64_t last = (view.sizes[d] - 1) * view.strides[d];
    (last < 0 ? low : high) += last;
  }
  const auto width = static_cast<int64_t>(size_of(view.dtype));
  const std::byte* first = view.data + low * width;
  std::vector<std::byte> copied;
#ifdef BINADE_WITH_CUDA
  if (!view.device.is_cpu()) {
    copied.resize(static_cast<size_t>((high - low + 1) * width));
    download_for_user(copied.data(), first, copied.size());
    first = copied.data();
  }
#endif
  values.reserve(static_cast<size_t>(view.numel));
  dispatch("user kernel", view.dtype, [&]<class T>(Type<T>) {
    const T* x = reinterpret_cast<const T*>(first) - low;
    Dims index = Dims::of(view.dim());
    for (int64_t i = 0; i < view.numel; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < view.dim(); ++d) {
        offset += index[d] * view.strides[d];
      }
      values.push_back(static_cast<double>(x[offset]));
      for (int d = view.dim() - 1; d >= 0 && ++index[d] == view.sizes[d]; --d) {
        index[d] = 0;
      }
    }
  });
  return values;
}

// The tolerance as a fraction of the largest value. Another order of additions, or an exponential
// with a few wrong bits, stays below it; a term missing from a sum of a few thousand does not.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-10;
    case DType::f32: return 5e-5;
    case DType::f16: return 4e-3;
    case DType::bf16: return 3e-2;
    default: return 0;
  }
}

}  // namespace

UserDifference compare_with_own(const View& got, const View& expected, DType precision) {
  const std::vector<double> ours = values_on_host(expected), theirs = values_on_host(got);
  double largest = 0;
  for (const double value : ours) {
    largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  }
  UserDifference difference;
  const double tolerance = tolerance_of(is_floating(got.dtype) ? precision : got.dtype) * largest;
  for (size_t i = 0; i < ours.size(); ++i) {
    const bool same = ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i])) ||
                      std::fabs(ours[i] - theirs[i]) <= tolerance;
    if (same) {
      continue;
    }
    if (!difference.found) {
      difference = {true, 0, static_cast<int64_t>(i), theirs[i], ours[i]};
    }
    ++difference.count;
  }
  return difference;
}

}  // namespace binade::kernels
