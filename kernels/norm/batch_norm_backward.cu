// Batch norm, backward. Sums of dy and dy (x - mean) over each channel in two stages in a fixed
// order (norm/channel_sums.cuh) give dweight, dbias and the coefficients of the map that writes dx
// (norm/channel_map.cuh). Training reads x and dy twice, evaluation reads dy once for dx.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/norm/channel_map.cuh>

namespace binade::kernels {
namespace {

// Computes dweight, dbias (null if not wanted) and the coefficients of dx from a channel's sums.
// rstd comes from the forward, or in evaluation from the running variance.
template <class C>
struct WriteGradients {
  double count, eps;
  const C* weight;
  const C* rstd;
  const C* variance;
  C* dweight;
  C* dbias;
  C* scale;  // null in evaluation, as the next two
  C* shift;
  C* slope;

  __device__ void operator()(int64_t channel, const ChannelSums& sums) const {
    const double r = rstd ? static_cast<double>(rstd[channel])
                          : 1 / std::sqrt(static_cast<double>(variance[channel]) + eps);
    if (dweight) {
      dweight[channel] = static_cast<C>(sums.second * r);
    }
    if (dbias) {
      dbias[channel] = static_cast<C>(sums.first);
    }
    if (scale) {
      const double w = weight ? static_cast<double>(weight[channel]) : 1.0;
      scale[channel] = static_cast<C>(w * r);
      shift[channel] = static_cast<C>(sums.first / count);
      slope[channel] = static_cast<C>(r * r * sums.second / count);
    }
  }
};

// dx = scale (dy - shift - (x - mean) slope). Multiplied by scale, slope would be less than the
// smallest float where x is huge.
template <class T>
struct BatchNormalizeBackward : NormalizeBackward<T> {
  using C = Compute<T>;
  struct Channel : NormalizeBackward<T>::Channel {
    __device__ __forceinline__ C value(C x, C dy) const {
      return this->scale * (dy - this->shift - (x - this->mean) * this->slope);
    }
  };
};

// Gradients of an empty batch are 0: one thread per channel.
template <class C>
__global__ void __launch_bounds__(kChannelThreads)
    batch_norm_backward_empty_kernel(C* dweight, C* dbias, int64_t channels) {
  const int64_t c = int64_t{blockIdx.x} * kChannelThreads + threadIdx.x;
  if (c < channels) {
    if (dweight) {
      dweight[c] = C(0);
    }
    if (dbias) {
      dbias[c] = C(0);
    }
  }
}

void clear_sums(const View& x, const View& dweight, const View& dbias) {
  const int64_t channels = x.size(1);
  if (channels == 0 || (!dweight && !dbias)) {
    return;
  }
  dispatch_floating("batch_norm backward", compute_dtype(x.dtype), [&]<class T>(Type<T>) {
    using C = Compute<T>;
    launch({"batch_norm_backward_empty_kernel", channel_blocks(channels), kChannelThreads},
           batch_norm_backward_empty_kernel<C>, dweight.as<C>(), dbias.as<C>(), channels);
  });
}

// Runs the backward of relu, into dresidual or workspace, then that of batch norm without relu.
void backward_through_relu(const BatchNormBackward& a) {
  const Workspace memory(a.dresidual ? 0 : static_cast<size_t>(a.x.numel) * size_of(a.x.dtype),
                         a.x.device);
  View own = a.x;
  own.data = memory.as<std::byte>();
  own.strides = channel_order(a.x) == Order::row_major ? row_major_strides(a.x.sizes)
                                                       : channels_last_strides(a.x.sizes);
  own.contiguous = is_row_major(own.sizes, own.strides);
  const View& dz = a.dresidual ? a.dresidual : own;
  cuda::unary_backward({.op = Unary::relu, .saved = a.y, .dy = a.dy, .dx = dz});
  cuda::batch_norm_backward({.x = a.x,
                             .dy = dz,
                             .weight = a.weight,
                             .mean = a.mean,
                             .rstd = a.rstd,
                             .dx = a.dx,
                             .dweight = a.dweight,
                             .dbias = a.dbias});
}

void own_batch_norm_backward(const BatchNormBackward& a) {
  if (a.y) {
    return backward_through_relu(a);
  }
  const Order order = channel_order(a.x);
  const DenseInput x(a.x, order), dy(a.dy, order);
  const DenseOutput dx(a.dx, order);
  const ChannelVectors vectors(3, a.x);
  dispatch_floating("batch_norm backward", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const ChannelPlan plan =
        channel_plan<T>(a.x, order == Order::channels_last, x.as<T>(), dy.as<T>(), dx.as<T>());
    C *scale = vectors.get<C>(0), *shift = vectors.get<C>(1), *slope = vectors.get<C>(2);
    channel_sums<T>(GradientSums<T>{x.as<T>(), dy.as<T>(), a.mean.as<C>()}, plan, a.x.device,
                    WriteGradients<C>{.count = static_cast<double>(plan.count),
                                      .eps = 0,
                                      .weight = a.weight.as<C>(),
                                      .rstd = a.rstd.as<C>(),
                                      .variance = nullptr,
                                      .dweight = a.dweight.as<C>(),
                                      .dbias = a.dbias.as<C>(),
                                      .scale = scale,
                                      .shift = shift,
                                      .slope = slope});
    if (a.dx) {
      channel_map<T>(BatchNormalizeBackward<T>{{x.as<T>(), dy.as<T>(), dx.as<T>(), a.mean.as<C>(),
                                                scale, shift, slope}},
                     plan);
    }
  });
  dx.store();
}

}  // namespace

void cuda::batch_norm_backward(const BatchNormBackward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return clear_sums(a.x, a.dweight, a.dbias);
  }
  run_norm(a, [&] { own_batch_norm_backward(a); });
}

void cuda::batch_norm_inference_backward(const BatchNormInferenceBackward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return clear_sums(a.x, a.dweight, a.dbias);
  }
  const Order order = channel_order(a.x);
  const bool rows = order == Order::channels_last;
  const DenseInput dy(a.dy, order);
  const DenseOutput dx(a.dx, order);
  const ChannelVectors vectors(1, a.x);
  dispatch_floating("batch_norm backward", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    if (a.dweight || a.dbias) {
      const DenseInput x(a.x, order);
      const ChannelPlan plan = channel_plan<T>(a.x, rows, x.as<T>(), dy.as<T>());
      channel_sums<T>(GradientSums<T>{x.as<T>(), dy.as<T>(), a.running_mean.as<C>()}, plan,
                      a.x.device,
                      WriteGradients<C>{.count = static_cast<double>(plan.count),
                                        .eps = a.eps,
                                        .weight = nullptr,
                                        .rstd = nullptr,
                                        .variance = a.running_var.as<C>(),
                                        .dweight = a.dweight.as<C>(),
                                        .dbias = a.dbias.as<C>(),
                                        .scale = nullptr,
                                        .shift = nullptr,
                                        .slope = nullptr});
    }
    if (a.dx) {
      const ChannelPlan plan = channel_plan<T>(a.x, rows, dy.as<T>(), dx.as<T>());
      C* scale = vectors.get<C>(0);
      inference_scale<C>(a.weight, a.running_var, a.eps, scale);
      channel_map<T>(Normalize<T>{dy.as<T>(), dx.as<T>(), nullptr, scale, nullptr}, plan);
    }
  });
  dx.store();
}

}  // namespace binade::kernels
