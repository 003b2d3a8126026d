#include <binade/kernels/conv/conv2d_choice_internal.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/cuda/tuning_internal.h>
#include <binade/kernels/cudnn/cudnn_api_internal.h>

namespace binade::kernels {
namespace {

std::vector<Candidate> candidates(DType dtype, const DeviceFacts& facts, bool tiles) {
  const bool tensor = facts.tensor_cores(dtype);
  const auto tile = [&](std::string_view name, KernelVariant variant, bool uses_tensor) {
    const char* hopeless = !tiles                   ? "tiles would be empty or cannot index it"
                           : uses_tensor && !tensor ? "no tensor cores for this dtype"
                           : !uses_tensor && tensor ? "tensor cores are faster"
                                                    : "";
    return Candidate{name, variant, hopeless};
  };
  return {{"own", KernelVariant::fitting, ""},
          {"own:direct", KernelVariant::direct, "one thread per element"},
          tile("own:simt_64", KernelVariant::simt_64, false),
          tile("own:simt_128", KernelVariant::simt_128, false),
          tile("own:tensor_64", KernelVariant::tensor_64, true),
          tile("own:tensor_128", KernelVariant::tensor_128, true),
          {"library", KernelVariant::library, cudnn::absence()}};
}

std::vector<int64_t> key_of(int direction, const View& result, const Conv2dSizes& d,
                            const Conv2dGeometry& g, int64_t epilogue) {
  return {direction,
          static_cast<int64_t>(result.dtype),
          int64_t{result.contiguous},
          epilogue,
          d.n,
          d.c,
          d.h,
          d.w,
          d.o,
          d.r,
          d.s,
          g.stride[0],
          g.stride[1],
          g.padding[0],
          g.padding[1],
          g.dilation[0],
          g.dilation[1],
          d.groups};
}

std::string problem_name(const Conv2dCall& c) {
  const Conv2dSizes& d = c.size;
  const Conv2dGeometry& g = c.geometry;
  return text(c.name, " ", c.result.dtype, " ", d.n, "x", d.c, "x", d.h, "x", d.w, " ", d.o, "x",
              d.r, "x", d.s, " stride ", g.stride[0], ",", g.stride[1], " padding ", g.padding[0],
              ",", g.padding[1], " dilation ", g.dilation[0], ",", g.dilation[1], " groups ",
              d.groups, c.result.contiguous ? " row-major" : "", c.bias ? " bias" : "",
              c.relu ? " relu" : "");
}

}  // namespace

KernelVariant conv2d_choice(const Conv2dCall& c, bool tiles, const Conv2dRun& run) {
  static auto& choices = *new ProviderChoices;
  const KernelVariant variant = conv2d_variant();
  if (variant == KernelVariant::library) {
    cudnn::require_library("conv2d");
  }
  if (variant != KernelVariant::timed) {
    return variant;
  }
  const std::vector<int64_t> key =
      key_of(c.direction, c.result, c.size, c.geometry, int64_t{c.bias} + 2 * int64_t{c.relu});
  const auto known = [&] {
    return candidates(c.result.dtype, device_facts(c.result.device), tiles);
  };
  return choices.choose({.device = c.result.device,
                         .key = key,
                         .name = [&] { return problem_name(c); },
                         .candidates = known,
                         .run = run});
}

}  // namespace binade::kernels
