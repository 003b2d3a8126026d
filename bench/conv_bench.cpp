// CPU convolution in f32 and bf16 by layer, direction, algorithm and threads, on channels-last
// memory: layers of the MNIST CNN (batch 64) and of ResNet-18 on 32 x 32 images (batch 32), two
// layers where Winograd is hardly faster, depthwise layers (MobileNet, EfficientNet, ConvNeXt, a
// causal sequence) and grouped layers (ResNeXt). FLOP/s count the direct sum for every algorithm;
// bytes/s count the minimum that a direction reads and writes. bench/peers/conv.py compares with
// PyTorch.
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/conv2d_provider.h>

#include <string>

namespace binade {
namespace {

struct Layer {
  const char* name;
  int64_t batch, channels, side, outputs, kernel = 3, stride = 1, padding = 1, groups = 1;
  bool sequence = false;  // a sequence: side, kernel and padding apply to its length only
};

constexpr Layer kLayers[] = {
    {"mnist1", 64, 1, 28, 32, 3, 1, 0},
    {"mnist2", 64, 32, 26, 64, 3, 1, 0},
    {"stem", 32, 3, 32, 64},
    {"rn64", 32, 64, 32, 64},
    {"rn128", 32, 128, 16, 128},
    {"rn256", 32, 256, 8, 256},
    {"rn512", 32, 512, 4, 512},
    {"narrow", 32, 16, 32, 32},
    {"few", 8, 512, 7, 512},
    {"stride2", 32, 64, 32, 128, 3, 2, 1},
    {"1x1", 32, 64, 32, 128, 1, 1, 0},
    {"1x1_stride2", 32, 64, 32, 128, 1, 2, 0},
    {"dw32", 8, 32, 112, 32, 3, 1, 1, 32},
    {"dw96_stride2", 8, 96, 112, 96, 3, 2, 1, 96},
    {"dw144", 8, 144, 56, 144, 3, 1, 1, 144},
    {"dw384", 8, 384, 14, 384, 3, 1, 1, 384},
    {"dw960", 8, 960, 7, 960, 3, 1, 1, 960},
    {"dw240_5x5", 8, 240, 28, 240, 5, 1, 2, 240},
    {"dw96_7x7", 8, 96, 56, 96, 7, 1, 3, 96},
    {"dw_batch1", 1, 384, 14, 384, 3, 1, 1, 384},
    {"dw_multiplier2", 8, 64, 28, 128, 3, 1, 1, 64},
    {"dw_odd", 8, 77, 29, 77, 3, 1, 1, 77},
    {"dw_sequence", 4, 512, 1024, 512, 4, 1, 3, 512, true},
    {"groups_2", 8, 64, 28, 64, 3, 1, 1, 32},
    {"groups_3", 8, 96, 28, 96, 3, 1, 1, 32},
    {"groups_4", 8, 128, 56, 128, 3, 1, 1, 32},
    {"groups_8", 8, 256, 28, 256, 3, 1, 1, 32},
    {"groups_16", 8, 512, 14, 512, 3, 1, 1, 32},
    {"groups_32", 8, 1024, 7, 1024, 3, 1, 1, 32},
    {"groups_8_16", 8, 256, 28, 512, 3, 1, 1, 32},
};

enum class Pass { forward, backward_data, backward_weight };
constexpr const char* kPassNames[] = {"forward", "backward_data", "backward_weight"};

void run(benchmark::State& state, const Layer& layer, Pass pass, const char* provider,
         DType dtype) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  kernels::set_conv2d_provider(provider);
  const int64_t side = (layer.side + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  const bool sequence = layer.sequence;
  const kernels::Conv2dGeometry geometry{.stride = {layer.stride, layer.stride},
                                         .padding = {sequence ? 0 : layer.padding, layer.padding},
                                         .groups = layer.groups};
  const int64_t per_group = layer.channels / layer.groups, high = sequence ? 1 : layer.kernel;
  const Tensor x = channels_last(
      randn({layer.batch, layer.channels, sequence ? 1 : layer.side, layer.side}).to(dtype));
  const Tensor w = channels_last(randn({layer.outputs, per_group, high, layer.kernel}).to(dtype));
  const Tensor y =
      channels_last(randn({layer.batch, layer.outputs, sequence ? 1 : side, side}).to(dtype));
  const auto call = [&] {
    if (pass == Pass::forward) {
      kernels::conv2d_forward({.x = x, .w = w, .y = y, .geometry = geometry});
    } else if (pass == Pass::backward_data) {
      kernels::conv2d_backward_data({.dy = y, .w = w, .dx = x, .geometry = geometry});
    } else {
      kernels::conv2d_backward_weight({.x = x, .dy = y, .dw = w, .geometry = geometry});
    }
  };
  call();
  for (auto _ : state) {
    call();
  }
  const double flops =
      2.0 * static_cast<double>(y.numel()) * static_cast<double>(per_group * high * layer.kernel);
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * (x.numel() + y.numel() + w.numel()) *
                          static_cast<int64_t>(size_of(dtype)));
  kernels::set_conv2d_provider("own");
  kernels::set_threads(0);
}

const bool kRegistered = [] {
  for (const Layer& layer : kLayers) {
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weight}) {
      if (layer.channels == 1 && pass == Pass::backward_data) {
        continue;  // images have no gradient
      }
      for (const char* provider : {"own", "own:direct", "own:winograd"}) {
        const bool winograd = layer.kernel == 3 && layer.stride == 1 && layer.groups == 1;
        if (!winograd && std::string(provider) != "own") {
          continue;  // there is only one algorithm
        }
        for (const DType dtype : {DType::f32, DType::bf16}) {
          const std::string name = std::string(layer.name) + "/" +
                                   kPassNames[static_cast<int>(pass)] + "/" + provider +
                                   (dtype == DType::bf16 ? "/bf16" : "");
          benchmark::RegisterBenchmark(name.c_str(), run, layer, pass, provider, dtype)
              ->ArgName("threads")
              ->Arg(1)
              ->Arg(2)
              ->Unit(benchmark::kMillisecond)
              ->UseRealTime();
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace binade
