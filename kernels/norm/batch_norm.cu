// Batch norm, forward. Statistics are sums over each channel in two stages in a fixed order
// (norm/channel_sums.cuh). The last stage computes mean, rstd and the scale of the map that writes
// y (norm/channel_map.cuh). x is read twice.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <binade/kernels/norm/channel_map.cuh>

namespace binade::kernels {
namespace {

// Computes mean, rstd and weight * rstd of a channel from sums of differences from its first
// element.
template <class T, class C = Compute<T>>
struct WriteMoments {
  const T* x;
  int64_t channel_stride;
  double count, eps;
  const C* weight;
  C* mean;
  C* rstd;
  C *variance, *mean_rest;  // null: not wanted
  C* scale;

  __device__ void operator()(int64_t channel, const ChannelSums& sums) const {
    const double shift = static_cast<double>(x[channel * channel_stride]);
    const double delta = sums.first / count, squares = sums.second / count - delta * delta;
    const double biased = squares < 0 ? 0 : squares;  // NaN stays
    const double inverse = 1 / std::sqrt(biased + eps);
    if (variance) {
      variance[channel] = static_cast<C>(biased);
    }
    mean[channel] = static_cast<C>(shift + delta);
    if (mean_rest) {
      mean_rest[channel] = static_cast<C>(shift - static_cast<double>(mean[channel]) + delta);
    }
    rstd[channel] = static_cast<C>(inverse);
    scale[channel] =
        static_cast<C>(weight ? static_cast<double>(weight[channel]) * inverse : inverse);
  }
};

// Updates the running statistics: one thread per channel.
template <class C>
__global__ void __launch_bounds__(kChannelThreads)
    batch_norm_running_kernel(const C* mean, const C* biased, C* running_mean, C* running_var,
                              int64_t channels, double momentum, double unbiased) {
  const int64_t c = int64_t{blockIdx.x} * kChannelThreads + threadIdx.x;
  if (c < channels) {
    const double variance = static_cast<double>(biased[c]) * unbiased;
    running_mean[c] = static_cast<C>((1 - momentum) * static_cast<double>(running_mean[c]) +
                                     momentum * static_cast<double>(mean[c]));
    running_var[c] =
        static_cast<C>((1 - momentum) * static_cast<double>(running_var[c]) + momentum * variance);
  }
}

// One thread per channel.
template <class C>
__global__ void __launch_bounds__(kChannelThreads)
    batch_norm_biased_kernel(C* variance, int64_t channels, double factor) {
  const int64_t c = int64_t{blockIdx.x} * kChannelThreads + threadIdx.x;
  if (c < channels) {
    variance[c] = static_cast<C>(static_cast<double>(variance[c]) * factor);
  }
}

void own_batch_norm_forward(const BatchNormForward& a) {
  const Order order = channel_order(a.x);
  const DenseInput x(a.x, order), residual(a.residual, order);
  const DenseOutput y(a.y, order);
  const ChannelVectors vectors(1, a.x);
  dispatch_floating("batch_norm", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const ChannelPlan plan =
        channel_plan<T>(a.x, order == Order::channels_last, x.as<T>(), y.as<T>(), residual.as<T>());
    C* scale = vectors.get<C>(0);
    channel_moments<T>(x.as<T>(), plan, a.x.device,
                       WriteMoments<T>{.x = x.as<T>(),
                                       .channel_stride = plan.inner,
                                       .count = static_cast<double>(plan.count),
                                       .eps = a.eps,
                                       .weight = a.weight.as<C>(),
                                       .mean = a.mean.as<C>(),
                                       .rstd = a.rstd.as<C>(),
                                       .variance = a.variance.as<C>(),
                                       .mean_rest = a.mean_rest.as<C>(),
                                       .scale = scale});
    channel_map<T>(Normalize<T>{.x = x.as<T>(),
                                .y = y.as<T>(),
                                .mean = a.mean.as<C>(),
                                .scale = scale,
                                .bias = a.bias.as<C>(),
                                .residual = residual.as<T>(),
                                .relu = a.relu},
                   plan);
  });
  y.store();
}

}  // namespace

void scale_variance(const View& variance, double factor) {
  launch({"batch_norm_biased_kernel", channel_blocks(variance.numel), kChannelThreads},
         batch_norm_biased_kernel<float>, variance.as<float>(), variance.numel, factor);
}

void cuda::batch_norm_forward(const BatchNormForward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  run_norm(a, [&] { own_batch_norm_forward(a); });
}

void cuda::batch_norm_inference(const BatchNormInference& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const Order order = channel_order(a.x);
  const DenseInput x(a.x, order), residual(a.residual, order);
  const DenseOutput y(a.y, order);
  const ChannelVectors vectors(1, a.x);
  dispatch_floating("batch_norm", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const ChannelPlan plan =
        channel_plan<T>(a.x, order == Order::channels_last, x.as<T>(), y.as<T>(), residual.as<T>());
    C* scale = vectors.get<C>(0);
    inference_scale<C>(a.weight, a.running_var, a.eps, scale);
    channel_map<T>(Normalize<T>{.x = x.as<T>(),
                                .y = y.as<T>(),
                                .mean = a.running_mean.as<C>(),
                                .scale = scale,
                                .bias = a.bias.as<C>(),
                                .residual = residual.as<T>(),
                                .relu = a.relu},
                   plan);
  });
  y.store();
}

void cuda::batch_norm_running(const BatchNormRunning& a) {
  check_arguments(a);
  const int64_t channels = a.running_mean.numel;
  if (channels == 0) {
    return;
  }
  const double n = static_cast<double>(a.count);
  dispatch_floating("batch_norm", a.running_mean.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    launch({"batch_norm_running_kernel", channel_blocks(channels), kChannelThreads},
           batch_norm_running_kernel<C>, a.mean.as<C>(), a.variance.as<C>(), a.running_mean.as<C>(),
           a.running_var.as<C>(), channels, a.momentum, n / (n - 1));
  });
}

}  // namespace binade::kernels
