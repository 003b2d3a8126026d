// Convolution on a GPU: chooses the kernel that computes a call, and brings the operands into the
// form that the kernel needs. The kernels are in conv2d_tensor.cu, conv2d_simt.cu (both implicit
// GEMM: conv/conv2d_loaders.cuh) and conv2d_direct.cu.
#include <binade/kernels/conv/conv2d_choice_internal.h>
#include <binade/kernels/conv/cudnn_conv2d_internal.h>
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/conv/conv2d_kernels.cuh>

#include <algorithm>
#include <optional>

namespace binade::kernels {
namespace {

constexpr int64_t kMinSplitPixels = 256;  // eight steps of a tile
constexpr int64_t kStepPixels = 32;

// The kernel that computes a call; tile 0 stands for the direct kernel.
struct Plan {
  int tile = 0;  // 64 or 128
  bool tensor = false;
};

// Tiles use 32-bit indices inside an image and along k; the number of blocks is 32-bit as well.
bool fits_tiles(const Conv2dSizes& d, const Conv2dGeometry& g, bool backward_data) {
  constexpr int64_t kLimit = int64_t{1} << 29;
  bool fits = d.h * d.w < kLimit && d.p * d.q < kLimit && d.o < kLimit && d.c < kLimit;
  fits = fits && d.r * d.s < kLimit && d.r * d.s * std::max(d.group_c, d.group_o) < kLimit;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t size = axis == 0 ? d.h : d.w, kernel = axis == 0 ? d.r : d.s;
    fits = fits && size + 2 * g.padding[axis] < kLimit && g.stride[axis] < kLimit &&
           g.dilation[axis] * kernel < kLimit && (!backward_data || g.stride[axis] <= kMaxPhases);
  }
  const double pixels = static_cast<double>(d.n) * static_cast<double>(d.h + kMaxPhases) *
                        static_cast<double>(d.w + kMaxPhases);
  const double channels = static_cast<double>(std::max(d.group_o, d.group_c) + 64);
  return fits && pixels / 64 * channels / 64 * static_cast<double>(d.groups) < 0x1p31;
}

// `fitting` is the tile to take if the provider's name leaves the choice open.
Plan plan(KernelVariant variant, DType dtype, const DeviceFacts& facts, int fitting) {
  switch (variant) {
    case KernelVariant::direct: return {};
    case KernelVariant::simt: return {fitting, false};
    case KernelVariant::simt_64: return {64, false};
    case KernelVariant::simt_128: return {128, false};
    case KernelVariant::tensor_64: return {64, facts.tensor_cores(dtype)};
    case KernelVariant::tensor_128: return {128, facts.tensor_cores(dtype)};
    default: return {fitting, facts.tensor_cores(dtype)};
  }
}

// The variant that the provider names. Direct, if tiles cannot index the call, or if they would be
// nearly empty (one or two channels per group).
KernelVariant variant_of(KernelVariant variant, const Conv2dSizes& d, const Conv2dGeometry& g,
                         bool backward_data) {
  const bool thin = d.groups > 1 && std::max(d.group_c, d.group_o) <= 4;
  return !fits_tiles(d, g, backward_data) || (thin && variant == KernelVariant::fitting)
             ? KernelVariant::direct
             : variant;
}

int64_t chunk_of(DType dtype) { return 16 / static_cast<int64_t>(size_of(dtype)); }
bool aligned(const View& view) { return reinterpret_cast<uintptr_t>(view.data) % 16 == 0; }

// An operand with the channels innermost: the tensor itself, with any other strides, or a packed
// copy. Packed is DenseInput or DenseOutput.
template <class Packed>
class Pixels {
 public:
  explicit Pixels(const View& view) : view_(view) {
    if (view.size(1) != 1 && view.strides[1] != 1) {
      packed_.emplace(view, Order::channels_last);
      view_ = packed_->view();
    }
  }
  const View& view() const { return view_; }
  void store() const {
    if (packed_) {
      packed_->store();
    }
  }
  void strides(int64_t (&result)[3]) const {
    result[0] = view_.strides[0];
    result[1] = view_.strides[2];
    result[2] = view_.strides[3];
  }
  // True if the chunks of a pixel's channels are aligned; `channels` is the number per group.
  bool chunked(int64_t channels) const {
    const int64_t chunk = chunk_of(view_.dtype);
    bool all = aligned(view_) && channels % chunk == 0;
    for (const int dim : {0, 2, 3}) {
      all = all && (view_.size(dim) == 1 || view_.strides[dim] % chunk == 0);
    }
    return all;
  }

 private:
  std::optional<Packed> packed_;
  View view_;
};

// `forward`: source is x and target y; else dy and dx. w is channels-last.
CorrelationShape correlation(const Conv2dSizes& d, const Conv2dGeometry& g, const View& w,
                             bool forward) {
  CorrelationShape p;
  p.vertical = forward ? forward_axis(g, 0, d.h, d.p, d.r) : backward_axis(g, 0, d.p, d.h, d.r);
  p.horizontal = forward ? forward_axis(g, 1, d.w, d.q, d.s) : backward_axis(g, 1, d.q, d.w, d.s);
  p.groups = static_cast<int>(d.groups);
  p.reduced = static_cast<int>(forward ? d.group_c : d.group_o);
  p.produced = static_cast<int>(forward ? d.group_o : d.group_c);
  p.images = d.n;
  p.weight_o = d.r * d.s * d.group_c;
  p.weight_r = d.s * d.group_c;
  p.weight_s = d.group_c;
  p.by_reduced = divider(p.reduced);
  p.vector_weights = aligned(w) && (forward ? p.weight_o : d.group_c) % chunk_of(w.dtype) == 0;
  return p;
}

// The large tile, unless it leaves multiprocessors without work. Only tensor cores have one for few
// columns.
int fitting_tile(const CorrelationShape& p, DType dtype, const DeviceFacts& facts) {
  const bool few = p.produced <= 64;
  if (few && !facts.tensor_cores(dtype)) {
    return 64;
  }
  return p.blocks(128, few ? 64 : 128) >= facts.processors ? 128 : 64;
}

template <class T>
void launch_correlation(const CorrelationProblem<T>& p, const Plan& plan, bool forward) {
  if constexpr (sizeof(T) == 2) {
    if (plan.tensor) {
      launch_conv2d_tensor(p, forward, plan.tile);
      return;
    }
  }
  launch_conv2d_simt(p, forward, plan.tile);
}

void forward_tiles(const Conv2dForward& a, const Conv2dSizes& size, KernelVariant variant) {
  const Pixels<DenseInput> x(a.x);
  const Pixels<DenseOutput> y(a.y);
  const DenseInput w(a.w, Order::channels_last);
  CorrelationShape shape = correlation(size, a.geometry, w.view(), true);
  x.strides(shape.source_strides);
  y.strides(shape.target_strides);
  shape.vector_source = x.chunked(size.group_c);
  shape.vector_target = y.chunked(size.group_o);
  const DeviceFacts facts = device_facts(a.y.device);
  const Plan chosen = plan(variant, a.y.dtype, facts, fitting_tile(shape, a.y.dtype, facts));
  dispatch_floating("conv2d_forward", a.y.dtype, [&]<class T>(Type<T>) {
    launch_correlation(CorrelationProblem<T>{.shape = shape,
                                             .source = x.view().template as<T>(),
                                             .w = w.as<T>(),
                                             .target = y.view().template as<T>(),
                                             .epilogue = DeviceEpilogue<T>(a.epilogue)},
                       chosen, true);
  });
  y.store();
}

void backward_data_tiles(const Conv2dBackwardData& a, const Conv2dSizes& size,
                         KernelVariant variant) {
  const Pixels<DenseInput> dy(a.dy);
  const Pixels<DenseOutput> dx(a.dx);
  const DenseInput w(a.w, Order::channels_last);
  CorrelationShape shape = correlation(size, a.geometry, w.view(), false);
  dy.strides(shape.source_strides);
  dx.strides(shape.target_strides);
  shape.vector_source = dy.chunked(size.group_o);
  shape.vector_target = dx.chunked(size.group_c);
  const DeviceFacts facts = device_facts(a.dx.device);
  const Plan chosen = plan(variant, a.dx.dtype, facts, fitting_tile(shape, a.dx.dtype, facts));
  dispatch_floating("conv2d_backward_data", a.dx.dtype, [&]<class T>(Type<T>) {
    launch_correlation(
        CorrelationProblem<T>{.shape = shape,
                              .source = dy.view().template as<T>(),
                              .w = w.as<T>(),
                              .target = dx.view().template as<T>(),
                              .epilogue = DeviceEpilogue<T>(Epilogue{.bias = a.bias})},
        chosen, false);
  });
  dx.store();
}

WeightGradient weight_gradient(const Conv2dSizes& d, const Conv2dGeometry& g) {
  WeightGradient p;
  p.groups = static_cast<int>(d.groups);
  p.group_c = static_cast<int>(d.group_c);
  p.group_o = static_cast<int>(d.group_o);
  p.columns = static_cast<int>(d.r * d.s * d.group_c);
  p.height = static_cast<int>(d.h);
  p.width = static_cast<int>(d.w);
  p.row_step = static_cast<int>(g.stride[0]);
  p.column_step = static_cast<int>(g.stride[1]);
  p.tap_row_step = static_cast<int>(g.dilation[0]);
  p.tap_column_step = static_cast<int>(g.dilation[1]);
  p.pad_row = static_cast<int>(g.padding[0]);
  p.pad_column = static_cast<int>(g.padding[1]);
  p.image_pixels = d.p * d.q;
  p.pixels = d.n * p.image_pixels;
  p.by_p = divider(d.p);
  p.by_q = divider(d.q);
  p.by_s = divider(d.s);
  p.by_c = divider(d.group_c);
  return p;
}

// Number of splits of the pixels: at most as many as give two blocks per multiprocessor.
int64_t splits_of(const WeightGradient& p, int tile, const DeviceFacts& facts) {
  const int64_t room = 2 * int64_t{facts.processors} / weight_blocks(p, tile, tile);
  return std::clamp<int64_t>(room, 1, std::max<int64_t>(p.pixels / kMinSplitPixels, 1));
}

void split_pixels(WeightGradient& p, int64_t splits) {
  constexpr int64_t kMost = int64_t{1} << 29;
  const int64_t pixels = std::min(ceil_div(p.pixels, splits), kMost);
  p.split_pixels = ceil_div(pixels, kStepPixels) * kStepPixels;
  p.splits = ceil_div(p.pixels, p.split_pixels);
}

// The large tile, if dw has enough rows and columns for it and there are enough blocks for the
// device.
int fitting_tile(const WeightGradient& p, const DeviceFacts& facts) {
  const int64_t blocks = weight_blocks(p, 128, 128) * splits_of(p, 128, facts);
  return p.group_o > 64 && p.columns > 64 && blocks >= facts.processors ? 128 : 64;
}

void backward_weight_tiles(const Conv2dBackwardWeight& a, const Conv2dSizes& size,
                           KernelVariant variant) {
  const Pixels<DenseInput> x(a.x);
  const DenseInput dy(a.dy, Order::channels_last);
  WeightGradient shape = weight_gradient(size, a.geometry);
  x.strides(shape.x_strides);
  shape.dy_stride = size.o;
  shape.vector_x = x.chunked(size.group_c);
  shape.vector_dy = aligned(dy.view()) && size.group_o % chunk_of(a.dy.dtype) == 0;
  shape.vector_partials = shape.columns * size_of(compute_dtype(a.dw.dtype)) % 16 == 0;
  const DeviceFacts facts = device_facts(a.dw.device);
  const Plan chosen = plan(variant, a.dw.dtype, facts, fitting_tile(shape, facts));
  split_pixels(shape, splits_of(shape, chosen.tile, facts));
  const Workspace partials(
      static_cast<size_t>(shape.splits * a.dw.numel) * size_of(compute_dtype(a.dw.dtype)),
      a.dw.device);
  dispatch_floating("conv2d_backward_weight", a.dw.dtype, [&]<class T>(Type<T>) {
    const WeightProblem<T> problem{.shape = shape,
                                   .x = x.view().template as<T>(),
                                   .dy = dy.as<T>(),
                                   .partials = partials.as<Compute<T>>()};
    if constexpr (sizeof(T) == 2) {
      if (chosen.tensor) {
        launch_conv2d_tensor(problem, chosen.tile);
        return;
      }
    }
    launch_conv2d_simt(problem, chosen.tile);
  });
  conv2d_sum_weight_partials(partials.as<void>(), shape.splits, a.dw);
}

// Runs the call as the provider says; run(variant, why) computes it, or returns false.
void run_chosen(const Conv2dCall& c, const Conv2dRun& run) {
  const bool tiles = variant_of(KernelVariant::fitting, c.size, c.geometry, c.direction == 1) !=
                     KernelVariant::direct;
  std::string why;
  if (!run(conv2d_choice(c, tiles, run), why)) {
    run(KernelVariant::fitting, why);
  }
}

}  // namespace

void cuda::conv2d_forward(const Conv2dForward& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.y.numel == 0) {
    return;
  }
  const Conv2dCall call{"conv2d_forward",
                        0,
                        a.y,
                        size,
                        a.geometry,
                        static_cast<bool>(a.epilogue.bias),
                        a.epilogue.activation == Activation::relu};
  run_chosen(call, [&](KernelVariant wanted, std::string& why) {
    if (wanted == KernelVariant::library) {
      return library_conv2d(a, size, why);
    }
    const KernelVariant variant = variant_of(wanted, size, a.geometry, false);
    variant == KernelVariant::direct ? conv2d_forward_direct(a, size)
                                     : forward_tiles(a, size, variant);
    return true;
  });
}

void cuda::conv2d_backward_data(const Conv2dBackwardData& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.dx.numel == 0) {
    return;
  }
  const Conv2dCall call{"conv2d_backward_data",   1, a.dx, size, a.geometry,
                        static_cast<bool>(a.bias)};
  run_chosen(call, [&](KernelVariant wanted, std::string& why) {
    if (wanted == KernelVariant::library) {
      return library_conv2d(a, size, why);
    }
    const KernelVariant variant = variant_of(wanted, size, a.geometry, true);
    variant == KernelVariant::direct ? conv2d_backward_data_direct(a, size)
                                     : backward_data_tiles(a, size, variant);
    return true;
  });
}

void cuda::conv2d_backward_weight(const Conv2dBackwardWeight& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.dw.numel == 0) {
    return;
  }
  if (a.dy.numel == 0) {  // no images
    conv2d_sum_weight_partials(nullptr, 0, a.dw);
    return;
  }
  const Conv2dCall call{"conv2d_backward_weight", 2, a.dw, size, a.geometry};
  run_chosen(call, [&](KernelVariant wanted, std::string& why) {
    if (wanted == KernelVariant::library) {
      return library_conv2d(a, size, why);
    }
    const KernelVariant variant = variant_of(wanted, size, a.geometry, false);
    variant == KernelVariant::direct ? conv2d_backward_weight_direct(a, size)
                                     : backward_weight_tiles(a, size, variant);
    return true;
  });
}

}  // namespace binade::kernels
