// Matrix products and convolutions at the shapes of GPT-2 and ResNet-50, for bench/one and
// scripts/gpu-check. The kernel cards leave them out because other cases use the same kernels.
#include <bench/kernel_cases.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/gemm/gemm.h>

#include <algorithm>

namespace binade::bench {
namespace {

constexpr int64_t kVocabulary = 50257;  // GPT-2's: rows of logits are not 16-byte aligned

// Multiplies [m, k] by [k, n].
Prepared product(const Shared& o, DType dtype, const View& a, const View& b) {
  const View& y = o->empty(dtype, {a.sizes[0], b.sizes[1]});
  const double flops = 2.0 * static_cast<double>(a.numel) * static_cast<double>(b.sizes[1]);
  return {o, [&a, &b, &y] { kernels::gemm({.a = a, .b = b, .y = y}); }, bytes_of(a, b, y), flops};
}

// Multiplies [rows, kIn cols] by [kIn cols, kOut cols].
template <int64_t kIn, int64_t kOut>
Prepared gemm_layer(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, kIn * cols}),
             &b = o->random(dtype, {kIn * cols, kOut * cols});
  return product(o, dtype, a, b);
}

// Computes logits with the embedding [vocabulary, cols] as the weight.
Prepared gemm_head(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, cols}), &w = o->random(dtype, {kVocabulary, cols});
  return product(o, dtype, a, o->view(w, {cols, kVocabulary}, {1, cols}));
}

// Computes the gradient of a weight [cols, 4 cols] from [rows, cols] and [rows, 4 cols].
Prepared gemm_weight_gradient(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &dy = o->random(dtype, {rows, 4 * cols});
  return product(o, dtype, o->view(x, {cols, rows}, {1, cols}), dy);
}

// One convolution of a ResNet: channels of x and y, image edge, kernel edge, stride.
struct Layer {
  int64_t in, out, image, kernel, stride;
};
enum class Pass { forward, data, weight };

Prepared convolution(const Layer& layer, int64_t images, DType dtype, Device device, Pass pass) {
  const Shared o = std::make_shared<Operands>(device);
  const int64_t padding = layer.kernel / 2,
                edge = (layer.image + 2 * padding - layer.kernel) / layer.stride + 1;
  const View &x = o->channels_last(o->random(dtype, {images, layer.in, layer.image, layer.image})),
             &y = o->channels_last(o->random(dtype, {images, layer.out, edge, edge})),
             &w = o->channels_last(
                 o->random(dtype, {layer.out, layer.in, layer.kernel, layer.kernel}));
  const kernels::Conv2dGeometry geometry{.stride = {layer.stride, layer.stride},
                                         .padding = {padding, padding}};
  const double flops = 2.0 * static_cast<double>(y.numel) *
                       static_cast<double>(layer.in * layer.kernel * layer.kernel);
  const auto run = [&x, &y, &w, geometry, pass] {
    switch (pass) {
      case Pass::forward:
        return kernels::conv2d_forward({.x = x, .w = w, .y = y, .geometry = geometry});
      case Pass::data:
        return kernels::conv2d_backward_data({.dy = y, .w = w, .dx = x, .geometry = geometry});
      case Pass::weight:
        return kernels::conv2d_backward_weight({.x = x, .dy = y, .dw = w, .geometry = geometry});
    }
  };
  return {o, run, bytes_of(x, y, w), flops};
}

// The image edge in the stage of a ResNet whose bottlenecks have `cols` channels: 56 for 64, halved
// for each doubling.
int64_t edge_of(int64_t cols) { return std::clamp<int64_t>(3584 / cols, 7, 56); }

template <Pass kPass>
Prepared conv_3x3(int64_t rows, int64_t cols, DType dtype, Device device) {
  return convolution({cols, cols, edge_of(cols), 3, 1}, rows, dtype, device, kPass);
}
template <Pass kPass>
Prepared conv_expand(int64_t rows, int64_t cols, DType dtype, Device device) {
  return convolution({cols, 4 * cols, edge_of(cols), 1, 1}, rows, dtype, device, kPass);
}
template <Pass kPass>
Prepared conv_reduce(int64_t rows, int64_t cols, DType dtype, Device device) {
  return convolution({4 * cols, cols, edge_of(cols), 1, 1}, rows, dtype, device, kPass);
}
template <Pass kPass>
Prepared conv_stem(int64_t rows, int64_t cols, DType dtype, Device device) {
  return convolution({3, cols, 224, 7, 2}, rows, dtype, device, kPass);
}

constexpr const char* k3x3 = "rows images, 3x3, cols to cols channels, edge 3584 / cols";
constexpr const char* kExpand = "rows images, 1x1, cols to 4 cols channels, edge 3584 / cols";
constexpr const char* kReduce = "rows images, 1x1, 4 cols to cols channels, edge 3584 / cols";
constexpr const char* kStem = "rows images of 224x224, 7x7 with stride 2, 3 to cols channels";

}  // namespace

const std::vector<KernelCase>& model_cases() {
  static const std::vector<KernelCase> cases = {
      {"gemm_qkv", "[rows, cols] x [cols, 3 cols]", gemm_layer<1, 3>},
      {"gemm_wide", "[rows, cols] x [cols, 4 cols]", gemm_layer<1, 4>},
      {"gemm_narrow", "[rows, 4 cols] x [4 cols, cols]", gemm_layer<4, 1>},
      {"gemm_weight_gradient", "[rows, cols]^T x [rows, 4 cols]", gemm_weight_gradient},
      {"gemm_head", "[rows, cols] x [50257, cols]^T", gemm_head},
      {"conv_3x3_forward", k3x3, conv_3x3<Pass::forward>},
      {"conv_3x3_backward_data", k3x3, conv_3x3<Pass::data>},
      {"conv_3x3_backward_weight", k3x3, conv_3x3<Pass::weight>},
      {"conv_expand_forward", kExpand, conv_expand<Pass::forward>},
      {"conv_expand_backward_data", kExpand, conv_expand<Pass::data>},
      {"conv_expand_backward_weight", kExpand, conv_expand<Pass::weight>},
      {"conv_reduce_forward", kReduce, conv_reduce<Pass::forward>},
      {"conv_reduce_backward_data", kReduce, conv_reduce<Pass::data>},
      {"conv_reduce_backward_weight", kReduce, conv_reduce<Pass::weight>},
      {"conv_stem_forward", kStem, conv_stem<Pass::forward>},
      {"conv_stem_backward_weight", kStem, conv_stem<Pass::weight>},
  };
  return cases;
}

}  // namespace binade::bench
