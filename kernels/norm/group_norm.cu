// Group norm, both directions. Sums per image and channel in two stages in a fixed order
// (norm/channel_sums.cuh); then one warp per group adds the sums of its channels and writes the
// coefficients of each channel and image for the map that writes y or dx (norm/channel_map.cuh). x,
// and in the backward dy, are read twice. Row-major images of few pixels are packed as
// channels-last: blocks of one plane would have too little work.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/norm/group_norm_internal.h>
#include <binade/kernels/norm/channel_map.cuh>

namespace binade::kernels {
namespace {

constexpr int64_t kSmallPlane = 256;
constexpr int kGroupThreads = 256, kGroupsOfBlock = kGroupThreads / 32;

Order memory_order(const View& x, const GroupNormSizes& d) {
  return x.contiguous && d.inner >= kSmallPlane ? Order::row_major : Order::channels_last;
}

// Stores the sums of a channel of an image.
struct KeepSums {
  ChannelSums* totals;
  __device__ void operator()(int64_t channel, const ChannelSums& sums) const {
    totals[channel] = sums;
  }
};

// The values that the warps of both directions use. Vectors of C have an element per image and
// channel but for weight and bias [C], mean and rstd [N, groups].
template <class C>
struct Groups {
  const ChannelSums* totals;
  int64_t count;  // N * groups
  int channels, group_channels;
  double pixels;  // per channel of an image
  const C* weight;
  C* map_mean;
  C* map_scale;

  // Index of the group's first channel: among all images' channels, and within an image.
  __device__ int64_t first(int64_t group) const { return group * group_channels; }
  __device__ double weight_of(int64_t channel) const {
    return weight ? static_cast<double>(weight[channel % channels]) : 1.0;
  }
};

template <class T, class C = Compute<T>>
struct ForwardGroups {
  Groups<C> all;
  const T* x;
  int64_t channel_stride, image_stride;  // distance to a channel's first element
  double eps;
  const C* bias;
  C* mean;
  C* rstd;
  C* map_bias;
};

template <class T>
__global__ void __launch_bounds__(kGroupThreads)
    group_norm_forward_warp_per_group_kernel(ForwardGroups<T> p) {
  using C = Compute<T>;
  const Groups<C>& all = p.all;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t group = int64_t{blockIdx.x} * kGroupsOfBlock + threadIdx.x / 32;
  const int64_t first = all.first(group);
  const int channels = group < all.count ? all.group_channels : 0;
  dev::Moments<double> moments{};
  for (int i = lane; i < channels; i += 32) {
    const int64_t channel = first + i;
    const ChannelSums sums = all.totals[channel];
    const int64_t image = channel / all.channels, in_image = channel - image * all.channels;
    const double shift =
        static_cast<double>(p.x[image * p.image_stride + in_image * p.channel_stride]);
    const double delta = sums.first / all.pixels;
    moments = moments.merge({all.pixels, shift + delta, sums.second - delta * sums.first});
  }
  moments = dev::warp_reduce<dev::Merge>(moments);
  if (group >= all.count) {
    return;
  }
  const double variance = moments.deviations / moments.count;
  const double rstd = 1 / std::sqrt((variance < 0 ? 0 : variance) + p.eps);
  if (lane == 0) {
    p.mean[group] = static_cast<C>(moments.mean);
    p.rstd[group] = static_cast<C>(rstd);
  }
  for (int i = lane; i < channels; i += 32) {
    const int64_t channel = first + i;
    all.map_mean[channel] = static_cast<C>(moments.mean);
    all.map_scale[channel] = static_cast<C>(all.weight_of(channel) * rstd);
    p.map_bias[channel] = p.bias ? p.bias[channel % all.channels] : C(0);
  }
}

template <class C>
struct BackwardGroups {
  Groups<C> all;
  const C* mean;
  const C* rstd;
  C* map_shift;
  C* map_slope;
};

template <class C>
__global__ void __launch_bounds__(kGroupThreads)
    group_norm_backward_warp_per_group_kernel(BackwardGroups<C> p) {
  const Groups<C>& all = p.all;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t group = int64_t{blockIdx.x} * kGroupsOfBlock + threadIdx.x / 32;
  const int64_t first = all.first(group);
  const int channels = group < all.count ? all.group_channels : 0;
  ChannelSums sums{};
  for (int i = lane; i < channels; i += 32) {
    const ChannelSums one = all.totals[first + i];
    const double weight = all.weight_of(first + i);
    sums = sums.merge({weight * one.first, weight * one.second});
  }
  sums = dev::warp_reduce<dev::Merge>(sums);
  if (group >= all.count) {
    return;
  }
  const double rstd = static_cast<double>(p.rstd[group]), count = all.pixels * channels;
  for (int i = lane; i < channels; i += 32) {
    const int64_t channel = first + i;
    all.map_mean[channel] = p.mean[group];
    all.map_scale[channel] = static_cast<C>(all.weight_of(channel) * rstd);
    p.map_shift[channel] = static_cast<C>(rstd * sums.first / count);
    p.map_slope[channel] = static_cast<C>(rstd * rstd * rstd * sums.second / count);
  }
}

// dweight = sum over images of rstd sum dy (x - mean), dbias = sum over images of sum dy, in a
// fixed order. Either may be null. 0 if there are no images.
template <class C>
__global__ void __launch_bounds__(dev::kColumns* dev::kParts)
    group_norm_parameter_gradients_kernel(const ChannelSums* totals, const C* rstd, int64_t images,
                                          int64_t channels, int group_channels, C* dweight,
                                          C* dbias) {
  auto& memory = dev::shared_mem<dev::ColumnSmem<ChannelSums>>();
  const int64_t channel = int64_t{blockIdx.x} * dev::kColumns + threadIdx.x;
  const int64_t groups = channels / group_channels;
  ChannelSums total{};
  for (int64_t i = threadIdx.y; i < (channel < channels ? images : 0); i += dev::kParts) {
    const ChannelSums sums = totals[i * channels + channel];
    const double r = static_cast<double>(rstd[i * groups + channel / group_channels]);
    total = total.merge({sums.first, sums.second * r});
  }
  total = dev::add_parts(total, memory);
  if (threadIdx.y == 0 && channel < channels) {
    if (dweight) {
      dweight[channel] = static_cast<C>(total.second);
    }
    if (dbias) {
      dbias[channel] = static_cast<C>(total.first);
    }
  }
}

unsigned group_blocks(const GroupNormSizes& d) {
  return static_cast<unsigned>(ceil_div(d.images * d.groups, kGroupsOfBlock));
}

// Memory for sums and `count` vectors of coefficients per image and channel.
class Memory {
 public:
  Memory(int vectors, const GroupNormSizes& d, const View& x)
      : planes_(d.images * d.channels),
        totals_(static_cast<size_t>(planes_) * sizeof(ChannelSums), x.device),
        vectors_(static_cast<size_t>(vectors * planes_) * size_of(compute_dtype(x.dtype)),
                 x.device) {}
  ChannelSums* totals() const { return totals_.as<ChannelSums>(); }
  template <class C>
  C* vector(int i) const {
    return vectors_.as<C>() + i * planes_;
  }
  template <class C>
  Groups<C> groups(const GroupNormSizes& d, const View& weight) const {
    return {.totals = totals(),
            .count = d.images * d.groups,
            .channels = static_cast<int>(d.channels),
            .group_channels = static_cast<int>(d.group_channels),
            .pixels = static_cast<double>(d.inner),
            .weight = weight.as<C>(),
            .map_mean = vector<C>(0),
            .map_scale = vector<C>(1)};
  }

 private:
  int64_t planes_;
  Workspace totals_, vectors_;
};

void parameter_gradients(const GroupNormBackward& a, const GroupNormSizes& d,
                         const ChannelSums* totals) {
  if (!a.dweight && !a.dbias) {
    return;
  }
  dispatch_floating("group_norm backward", a.mean.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    launch({"group_norm_parameter_gradients_kernel",
            static_cast<unsigned>(ceil_div(d.channels, dev::kColumns)),
            dim3(dev::kColumns, dev::kParts), sizeof(dev::ColumnSmem<ChannelSums>)},
           group_norm_parameter_gradients_kernel<C>, totals, a.rstd.as<C>(),
           totals ? d.images : int64_t{0}, d.channels, static_cast<int>(d.group_channels),
           a.dweight.as<C>(), a.dbias.as<C>());
  });
}

}  // namespace

void cuda::group_norm_forward(const GroupNormForward& a) {
  const GroupNormSizes d = checked_sizes(a);
  if (a.x.numel == 0) {
    return;
  }
  const Order order = memory_order(a.x, d);
  const bool rows = order == Order::channels_last;
  const DenseInput x(a.x, order);
  const DenseOutput y(a.y, order);
  const Memory memory(3, d, a.x);
  dispatch_floating("group_norm", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const ChannelPlan plan = image_channel_plan<T>(a.x, rows, d.inner, x.as<T>(), y.as<T>());
    channel_moments<T>(x.as<T>(), plan, a.x.device, KeepSums{memory.totals()});
    launch({"group_norm_forward_warp_per_group_kernel", group_blocks(d), kGroupThreads},
           group_norm_forward_warp_per_group_kernel<T>,
           ForwardGroups<T>{.all = memory.groups<C>(d, a.weight),
                            .x = x.as<T>(),
                            .channel_stride = rows ? 1 : d.inner,
                            .image_stride = d.channels * d.inner,
                            .eps = a.eps,
                            .bias = a.bias.as<C>(),
                            .mean = a.mean.as<C>(),
                            .rstd = a.rstd.as<C>(),
                            .map_bias = memory.vector<C>(2)});
    channel_map<T>(Normalize<T>{x.as<T>(), y.as<T>(), memory.vector<C>(0), memory.vector<C>(1),
                                memory.vector<C>(2)},
                   plan);
  });
  y.store();
}

void cuda::group_norm_backward(const GroupNormBackward& a) {
  const GroupNormSizes d = checked_sizes(a);
  if (a.x.numel == 0) {
    return parameter_gradients(a, d, nullptr);
  }
  const Order order = memory_order(a.x, d);
  const bool rows = order == Order::channels_last;
  const DenseInput x(a.x, order), dy(a.dy, order);
  const DenseOutput dx(a.dx, order);
  const Memory memory(4, d, a.x);
  dispatch_floating("group_norm backward", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const ChannelPlan plan =
        image_channel_plan<T>(a.x, rows, d.inner, x.as<T>(), dy.as<T>(), dx.as<T>());
    channel_sums<T>(GradientSums<T>{x.as<T>(), dy.as<T>(), a.mean.as<C>(),
                                    static_cast<uint32_t>(d.group_channels)},
                    plan, a.x.device, KeepSums{memory.totals()});
    if (a.dx) {
      launch({"group_norm_backward_warp_per_group_kernel", group_blocks(d), kGroupThreads},
             group_norm_backward_warp_per_group_kernel<C>,
             BackwardGroups<C>{.all = memory.groups<C>(d, a.weight),
                               .mean = a.mean.as<C>(),
                               .rstd = a.rstd.as<C>(),
                               .map_shift = memory.vector<C>(2),
                               .map_slope = memory.vector<C>(3)});
      channel_map<T>(
          NormalizeBackward<T>{x.as<T>(), dy.as<T>(), dx.as<T>(), memory.vector<C>(0),
                               memory.vector<C>(1), memory.vector<C>(2), memory.vector<C>(3)},
          plan);
    }
  });
  parameter_gradients(a, d, memory.totals());
  dx.store();
}

}  // namespace binade::kernels
