#include <binade/core/autograd/node.h>
#include <binade/core/observe/exponents.h>
#include <binade/kernels/exponents/exponents.h>
#include <binade/train/precision/gradient_recorder_internal.h>

namespace binade::train {

void GradientRecorder::upstream(const GradientEvent& event) {
  const Tensor& gradient = event.upstream;
  if (!gradient.defined() || gradient.numel() <= 1) {
    return;
  }
  const bool narrow = size_of(gradient.dtype()) == 2;
  Tensor& counts = narrow ? counts_.narrow : counts_.wide;
  (narrow ? counts_.narrow_dtype : counts_.wide_dtype) = gradient.dtype();
  if (!counts.defined()) {
    counts = zeros({kernels::kExponentCounters}, DType::i64, gradient.device());
  }
  count_exponents(gradient, counts);
}

std::optional<GradientSizes> read_sizes(const GradientCounts& counts, double scale) {
  const bool narrow = counts.narrow.defined();
  const Tensor& chosen = narrow ? counts.narrow : counts.wide;
  if (!chosen.defined()) {
    return std::nullopt;
  }
  const ExponentCounts read(chosen, scale);
  if (read.infinities() + read.nans() > 0) {
    return std::nullopt;
  }
  GradientSizes sizes{.stored = narrow ? counts.narrow_dtype : counts.wide_dtype,
                      .largest = read.largest(),
                      .smallest = read.smallest(),
                      .elements = read.numel(),
                      .zeros = read.zeros()};
  for (int e = ExponentCounts::kLeast - 1; e <= ExponentCounts::kMost; ++e) {
    if (read.at(e) > 0) {
      sizes.least_exponent = sizes.exponents.empty() ? e : sizes.least_exponent;
      sizes.exponents.resize(static_cast<size_t>(e - sizes.least_exponent) + 1);
      sizes.exponents.back() = read.at(e);
    }
  }
  return sizes;
}

}  // namespace binade::train
