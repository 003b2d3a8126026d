// y = f(x, other) element by element, with coefficients per channel: the second half of batch norm,
// over the same layouts as norm/channel_sums.cuh. With rows of channels a thread keeps the
// coefficients of its channels in registers for its whole chunk of rows; with planes it reads them
// from the cache.
#pragma once
#include <binade/kernels/norm/channel_sums.cuh>

namespace binade::kernels {

// y = (x - mean) scale + bias + residual, or relu of that. mean, bias and residual may be null (0).
template <class T>
struct Normalize {
  using C = Compute<T>;
  const T* x;
  T* y;
  const C* mean;
  const C* scale;
  const C* bias;
  const T* residual = nullptr;
  bool relu = false;

  struct Channel {
    C mean, scale, bias;
    bool relu;

    __device__ __forceinline__ void start(const Normalize& a, int64_t channel) {
      mean = a.mean ? a.mean[channel] : C(0);
      scale = a.scale[channel];
      bias = a.bias ? a.bias[channel] : C(0);
      relu = a.relu;
    }
    __device__ __forceinline__ C value(C x, C residual) const {
      const C z = (x - mean) * scale + bias + residual;
      return relu && z < C(0) ? C(0) : z;
    }
  };
  __device__ const T* other() const { return residual; }
};

// dx = scale dy - shift - (x - mean) slope.
template <class T>
struct NormalizeBackward {
  using C = Compute<T>;
  const T* x;
  const T* dy;
  T* y;  // dx
  const C* mean;
  const C* scale;
  const C* shift;
  const C* slope;

  struct Channel {
    C mean, scale, shift, slope;

    __device__ __forceinline__ void start(const NormalizeBackward& a, int64_t channel) {
      mean = a.mean[channel];
      scale = a.scale[channel];
      shift = a.shift[channel];
      slope = a.slope[channel];
    }
    __device__ __forceinline__ C value(C x, C dy) const {
      return scale * dy - shift - (x - mean) * slope;
    }
  };
  __device__ const T* other() const { return dy; }
};

template <class T, class F>
__global__ void __launch_bounds__(ChannelPlan::kThreads)
    channel_map_of_rows_kernel(F f, ChannelPlan plan) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  constexpr int kValues = Slots::kValues;
  const int thread = static_cast<int>(threadIdx.x), lanes = plan.lanes;
  const RowsPart part(plan, kValues);
  const int64_t channel = part.channel, left = plan.channels - channel;
  const Slots slots(static_cast<int>(left < lanes * kValues ? left : lanes * kValues), lanes,
                    thread % lanes, plan.vectors);
  typename F::Channel all[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    all[i].start(f, part.image * plan.channels + channel + (slots.holds(i) ? slots.column(i) : 0));
  }
  const int step = ChannelPlan::kThreads / lanes;
  for (int64_t row = part.begin + thread / lanes; row < part.end; row += step) {
    const int64_t at = row * plan.channels + channel;
    C x[kValues], other[kValues] = {};
    slots.load(f.x + at, C(0), x);
    if (f.other()) {
      slots.load(f.other() + at, C(0), other);
    }
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      x[i] = all[i].value(x[i], other[i]);
    }
    slots.store(f.y + at, x);
  }
}

template <class T, int kWidth, class F>
__device__ __forceinline__ void map_plane(const F& f, const ChannelPlan& plan, int64_t channel,
                                          int64_t begin, int64_t end) {
  using C = Compute<T>;
  typename F::Channel one;
  one.start(f, channel);
  // 64-bit divisions are function calls, across which an unrolled loop would spill.
#pragma unroll 1
  for (int64_t i = begin + threadIdx.x; i < end; i += ChannelPlan::kThreads) {
    const int64_t at = plane_position<kWidth>(plan, channel, i);
    C x[kWidth], other[kWidth] = {};
    dev::load_as(f.x + at, x);
    if (f.other()) {
      dev::load_as(f.other() + at, other);
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      x[j] = one.value(x[j], other[j]);
    }
    dev::store_from(f.y + at, x);
  }
}

template <class T, class F>
__global__ void __launch_bounds__(ChannelPlan::kThreads)
    channel_map_of_planes_kernel(F f, ChannelPlan plan) {
  constexpr int kVector = dev::kVectorOf<T>;
  const int64_t chunk = blockIdx.x / plan.tiles, channel = blockIdx.x % plan.tiles;
  const int64_t all = plan.vectors ? plan.count / kVector : plan.count;
  const int64_t begin = chunk * plan.chunk;
  const int64_t end = begin + plan.chunk < all ? begin + plan.chunk : all;
  if (plan.vectors) {
    map_plane<T, kVector>(f, plan, channel, begin, end);
  } else {
    map_plane<T, 1>(f, plan, channel, begin, end);
  }
}

template <class T, class F>
void channel_map(const F& f, ChannelPlan plan) {
  plan.cut(ChannelPlan::kMapBlocks);
  if (plan.rows) {
    launch({"channel_map_of_rows_kernel", plan.blocks(), plan.kThreads},
           channel_map_of_rows_kernel<T, F>, f, plan);
  } else {
    launch({"channel_map_of_planes_kernel", plan.blocks(), plan.kThreads},
           channel_map_of_planes_kernel<T, F>, f, plan);
  }
}

// Kernels with one thread per channel.
inline constexpr int kChannelThreads = 256;

inline unsigned channel_blocks(int64_t channels) {
  return static_cast<unsigned>(ceil_div(channels, kChannelThreads));
}

// scale = weight / sqrt(var + eps): one thread per channel.
template <class C>
__global__ void __launch_bounds__(kChannelThreads)
    inference_scale_kernel(const C* weight, const C* variance, C* scale, int64_t channels,
                           double eps) {
  const int64_t c = int64_t{blockIdx.x} * kChannelThreads + threadIdx.x;
  if (c < channels) {
    const double w = weight ? static_cast<double>(weight[c]) : 1.0;
    scale[c] = static_cast<C>(w / std::sqrt(static_cast<double>(variance[c]) + eps));
  }
}

template <class C>
void inference_scale(const View& weight, const View& variance, double eps, C* scale) {
  launch({"inference_scale_kernel", channel_blocks(variance.numel), kChannelThreads},
         inference_scale_kernel<C>, weight.as<C>(), variance.as<C>(), scale, variance.numel, eps);
}

// The memory order in which kernels over channels take x and its gradients: row-major if x is (with
// planes of more than one element), else channels-last, which includes [N, C] and [N, C, 1, 1].
inline Order channel_order(const View& x) {
  const bool planes = x.dim() > 2 && x.numel != x.size(0) * x.size(1);
  return x.contiguous && planes ? Order::row_major : Order::channels_last;
}

// `count` vectors [C] in the compute dtype of x, in one workspace.
class ChannelVectors {
 public:
  ChannelVectors(int count, const View& x)
      : channels_(x.size(1)),
        workspace_(static_cast<size_t>(count * channels_) * size_of(compute_dtype(x.dtype)),
                   x.device) {}
  template <class C>
  C* get(int i) const {
    return workspace_.as<C>() + i * channels_;
  }

 private:
  int64_t channels_;
  Workspace workspace_;
};

}  // namespace binade::kernels
