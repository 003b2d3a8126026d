// How a step updates f16 and bf16 parameters that have no master. nearest rounds the new value: an
// update below half a unit in the last place of its weight is lost. The others keep such updates:
//   stochastic:  rounds up or down at random so that the mean of many roundings is the new value
//                (Zamirai et al., "Revisiting BFloat16 Training", 2020)
//   compensated: a second array of the parameter's dtype holds the rounding errors, and the next
//                step adds them again (Kahan's summation; ibid.)
#pragma once
#include <binade/kernels/base/half.h>
#include <binade/kernels/base/view.h>
#include <binade/kernels/formats/format_rounding.h>

namespace binade {

enum class LowUpdates : uint8_t { nearest, stochastic, compensated };

}  // namespace binade

namespace binade::kernels {

// The arguments for such updates in a step over a range (kernels/optimizer/optimizer.h).
struct LowUpdate {
  LowUpdates how = LowUpdates::nearest;
  View compensation = kNoView;  // like param; for `compensated`
  // For `stochastic`: element i of the range takes number (first + i, u) of the Philox sequence of
  // `seed`, where u is the number of the update (from step_scalars, if these are given).
  uint64_t seed = 0;
  int64_t first = 0, update = 0;
};
inline constexpr LowUpdate kPlainUpdate{};

BINADE_HD inline FormatGrid storage_grid(half) {
  return {.max = 65504,
          .beyond = std::numeric_limits<double>::infinity(),
          .mantissa_bits = 10,
          .min_exponent = -14,
          .bias = 15};
}
BINADE_HD inline FormatGrid storage_grid(bfloat16) {
  return {.max = 0x1.fep127,
          .beyond = std::numeric_limits<double>::infinity(),
          .mantissa_bits = 7,
          .min_exponent = -126,
          .bias = 127};
}

template <class T>
BINADE_HD T stochastic_value(float value, uint64_t seed, int64_t element, uint64_t update) {
  const auto at = static_cast<uint64_t>(element);
  const philox::Block block = philox::generate(seed, at / 4, update);
  return static_cast<T>(round_to_grid(value, storage_grid(T{}), Rounding::stochastic,
                                      block[static_cast<size_t>(at % 4)]));
}

}  // namespace binade::kernels
