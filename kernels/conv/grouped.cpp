// How grouped convolution spreads channels over vectors, and the rule that says when it runs.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/conv/grouped_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace binade::kernels {
namespace {

constexpr int64_t kMaxSlots = 8;  // accumulators of a vector of pixels that registers can hold

int64_t vector_lanes(DType compute) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets_best(f32, f64);
  return compute == DType::f64 ? f64.lanes : f32.lanes;
}

}  // namespace

GroupedLanes grouped_lanes(DType compute, int64_t groups, int64_t reduced, int64_t produced) {
  GroupedLanes l{.groups = groups, .reduced = reduced, .produced = produced};
  l.width = std::gcd(reduced, produced);
  l.slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(l.width)));
  l.lanes = vector_lanes(compute);
  l.step = std::max<int64_t>(1, l.lanes / l.width * l.width);
  return l;
}

bool grouped_pays(const GroupedLanes& l) {
  if (l.groups == 1 || l.width > l.lanes || l.slots > kMaxSlots) {
    return false;
  }
  // Useful multiplications, of those that are done: step / lanes * width / slots against produced /
  // (produced rounded up to whole vectors).
  const int64_t columns = ceil_div(l.produced, l.lanes) * l.lanes;
  return l.step * l.width * columns > l.produced * l.lanes * l.slots;
}

std::vector<int32_t> expanded_channels(const GroupedLanes& l) {
  std::vector<int32_t> result;
  for (int64_t phase = 0; phase < l.phases(); ++phase) {
    for (int64_t o = 0; o < l.channels(); ++o) {
      const int64_t group = o / l.produced;
      result.push_back(static_cast<int32_t>(group * l.reduced + phase * l.width + o % l.width));
    }
  }
  return result;
}

std::vector<int32_t> lane_rotations(const GroupedLanes& l, int sign) {
  std::vector<int32_t> result(static_cast<size_t>(l.slots * l.lanes), 0);
  for (int64_t k = 0; k < l.width; ++k) {
    for (int64_t i = 0; i < l.step; ++i) {
      const int64_t j = i % l.width;
      result[static_cast<size_t>(k * l.lanes + i)] =
          static_cast<int32_t>(i - j + (j + l.width + sign * k) % l.width);
    }
  }
  return result;
}

}  // namespace binade::kernels
