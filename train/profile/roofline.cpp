#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/profile/roofline_internal.h>

#include <algorithm>
#include <limits>

namespace binade::train {
namespace {

template <class F>
double best_seconds(int repeats, F&& f) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const int64_t begin = binade::detail::timeline_now();
    f();
    best = std::min(best, static_cast<double>(binade::detail::timeline_now() - begin) * 1e-9);
  }
  return best;
}

}  // namespace

Roofline measure_roofline(Device device) {
  if (!device.is_cpu()) {
    return {};
  }
  const UnobservedGuard unobserved;
  constexpr int64_t kSide = 512, kElements = int64_t{1} << 23;
  constexpr double kProduct = 2.0 * kSide * kSide * kSide;
  constexpr double kCopied = 2.0 * sizeof(float) * kElements;
  constexpr int kRepeats = 5;
  const Tensor a = full({kSide, kSide}, 0.5), b = full({kSide, kSide}, 0.25);
  const double product = best_seconds(kRepeats, [&] { matmul(a, b); });
  const Tensor from = full({kElements}, 1), to = empty({kElements});
  const double copy = best_seconds(kRepeats, [&] { to.copy_(from); });
  return {.flops = kProduct / product, .bytes = kCopied / copy};
}

}  // namespace binade::train
