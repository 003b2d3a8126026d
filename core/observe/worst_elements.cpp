#include <binade/core/autograd/autograd.h>
#include <binade/core/observe/worst_elements.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/half.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

namespace binade {
namespace {

constexpr int64_t kElementsOfTask = 1 << 15;

// From -127, which also holds what f32 has as subnormal numbers; 128 for infinities and NaN.
int binade_of(float value) {
  return static_cast<int>(std::bit_cast<uint32_t>(value) >> 23 & 255) - 127;
}

double relative_error(const WorstElement& e) {
  return std::isinf(e.in_f16) ? std::numeric_limits<double>::infinity()
                              : std::abs(double{e.in_f16} - double{e.value}) / std::abs(e.value);
}

Dims place_of(int64_t order, const Dims& sizes) {
  Dims place = sizes;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    place[d] = order % sizes[d];
    order /= sizes[d];
  }
  return place;
}

void keep_worst(std::vector<WorstElement>& list, const WorstElement& element, size_t most) {
  if (list.size() == most && (most == 0 || !element.is_worse_than(list.back()))) {
    return;
  }
  const auto at = std::find_if(list.begin(), list.end(), [&](const WorstElement& other) {
    return element.is_worse_than(other);
  });
  list.insert(at, element);
  list.resize(std::min(list.size(), most));
}

}  // namespace

bool WorstElement::is_worse_than(const WorstElement& other) const {
  const double error = relative_error(*this), other_error = relative_error(other);
  if (error != other_error) {
    return error > other_error;
  }
  const float size = std::abs(value), other_size = std::abs(other.value);
  return size != other_size ? size > other_size : order < other.order;
}

void WorstElements::add(const Tensor& x, double scale) {
  if (per_exponent_ == 0 || x.numel() == 0) {
    return;
  }
  const NoGradGuard guard;
  const Tensor host = contiguous(x.detach().to(DType::f32).to(Device{}));
  const float* values = host.data<float>();
  std::mutex mutex;
  kernels::parallel_for(host.numel(), kElementsOfTask, [&](int64_t begin, int64_t end) {
    std::map<int, std::vector<WorstElement>> found;
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<float>(values[i] / scale);
      const int exponent = binade_of(value);
      if (value == 0 || exponent > 127) {
        continue;
      }
      keep_worst(found[exponent],
                 {.order = i,
                  .value = value,
                  .in_f16 = static_cast<float>(half(value)),
                  .in_bf16 = static_cast<float>(bfloat16(value))},
                 per_exponent_);
    }
    const std::lock_guard lock(mutex);
    for (auto& [exponent, list] : found) {
      for (WorstElement& element : list) {
        element.place = place_of(element.order, x.sizes());
        keep_worst(by_exponent_[exponent], element, per_exponent_);
      }
    }
  });
}

}  // namespace binade
