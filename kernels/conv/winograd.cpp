// Sizes of Winograd's convolution, and the rule that says when it runs.
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <binade/kernels/conv/winograd_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>

#include <algorithm>
#include <limits>

namespace binade::kernels {
namespace {

// With fewer channels the transforms cost more than they save.
constexpr int64_t kMinReduced = 16, kMinProduced = 32;

// The direct sum takes a time per pixel of the result. In its units, Winograd takes a time per
// convolution, for the weight, and one per tile, of which the border may cut off a part. The more
// channels, the less the transforms cost beside the products.
struct WinogradCost {
  int64_t channels;  // up to so many
  int64_t fixed, per_tile;
};
constexpr WinogradCost kCosts[] = {
    {23, 32, 11}, {63, 64, 8}, {255, 56, 5}, {std::numeric_limits<int64_t>::max(), 32, 4}};

int64_t tiles_along(int64_t side) { return (side + kWinogradTile - 1) / kWinogradTile; }

}  // namespace

WinogradTensor::WinogradTensor(const View& view, Access access)
    : pixels_(view, 1, access),
      zeros_(access == Access::read ? static_cast<size_t>(view.size(1)) * size_of(view.dtype) : 0) {
  if (access == Access::read) {
    std::fill_n(zeros_.as<std::byte>(), static_cast<size_t>(view.size(1)) * size_of(view.dtype),
                std::byte{0});
  }
  images_ = {.data = pixels_.data(),
             .dtype = view.dtype,
             .image_stride = view.size(2) * view.size(3) * pixels_.stride(),
             .row_stride = view.size(3) * pixels_.stride(),
             .column_stride = pixels_.stride(),
             .rows = view.size(2),
             .columns = view.size(3),
             .channels = view.size(1),
             .zeros = zeros_.as<std::byte>()};
}

WinogradTiles winograd_tiles(const View& outputs) {
  const int64_t high = tiles_along(outputs.size(2)), wide = tiles_along(outputs.size(3));
  return {.high = high, .wide = wide, .first = 0, .count = outputs.size(0) * high * wide};
}

bool winograd_can(DType dtype, const Conv2dSizes& size, const Conv2dGeometry& geometry) {
  const bool plain = geometry.stride[0] == 1 && geometry.stride[1] == 1 &&
                     geometry.dilation[0] == 1 && geometry.dilation[1] == 1 && geometry.groups == 1;
  return dtype != DType::f64 && size.r == 3 && size.s == 3 && plain && size.n > 0 && size.c > 0 &&
         size.o > 0;
}

bool winograd_pays(const Conv2dSizes& size, Conv2dPass pass) {
  const bool turned = pass == Conv2dPass::backward_data;
  const int64_t high = turned ? size.h : size.p, wide = turned ? size.w : size.q;
  const int64_t pixels = size.n * high * wide;
  const int64_t tiles = size.n * tiles_along(high) * tiles_along(wide);
  const int64_t reduced = turned ? size.o : size.c, produced = turned ? size.c : size.o;
  const auto cost = std::ranges::find_if(
      kCosts, [&](const WinogradCost& one) { return std::min(reduced, produced) <= one.channels; });
  return isa() != Isa::baseline && reduced >= kMinReduced && produced >= kMinProduced &&
         pixels >= cost->fixed + cost->per_tile * tiles;
}

// True if AMX can multiply the whole sum: it needs pairs of channels or, for the weight, pairs of
// images.
static bool amx_sums(DType dtype, const Conv2dSizes& size, Conv2dPass pass) {
  switch (pass) {
    case Conv2dPass::forward: return amx_runs(dtype) && size.group_c % 2 == 0;
    case Conv2dPass::backward_data: return amx_runs(dtype) && size.group_o % 2 == 0;
    default: return amx_runs(dtype) && size.n > 1;
  }
}

bool winograd_runs(DType dtype, const Conv2dSizes& size, const Conv2dGeometry& geometry,
                   Conv2dPass pass) {
  if (!winograd_can(dtype, size, geometry)) {
    return false;
  }
  switch (conv2d_variant()) {
    case KernelVariant::winograd: return true;
    case KernelVariant::direct: return false;
    default:
      return math_mode() == MathMode::fast && winograd_pays(size, pass) &&
             !amx_sums(dtype, size, pass);
  }
}

}  // namespace binade::kernels
