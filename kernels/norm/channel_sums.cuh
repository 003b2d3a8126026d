// Tensors [N, C, ...] per channel: two sums per channel in two stages, and maps with coefficients
// per channel. Memory is either rows of channels (channels-last: [rows, C]) or planes ([N, C,
// inner]).
//  - sums over rows: a block takes a tile of channels and a chunk of rows. Lanes lie across
//    channels with 16 bytes each and add up to kChunkRows rows in registers in the compute type;
//    lanes of the same channels then add in double, by shuffles and in shared memory.
//  - sums over planes: a block takes one channel and a chunk of its elements.
// Both write one pair of doubles per chunk and channel, which channel_totals_kernel adds in order.
// Sums and maps per image and channel work the same way: planes [N, C, inner] become [1, N C,
// inner], and rows carry the number of images, so that a tile belongs to one image.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/column_sums.cuh>
#include <binade/kernels/cuda/row_team.cuh>

#include <cmath>
#include <limits>

namespace binade::kernels {

// How a tensor is split over blocks of kThreads threads.
struct ChannelPlan {
  static constexpr int kThreads = 256, kChunkRows = 128;  // rows per thread and chunk at most
  // Enough to fill a device; no more sums than the second stage adds quickly.
  static constexpr int64_t kSumBlocks = 1024, kMapBlocks = 4096;

  int64_t count;     // elements per channel; with images, per channel of one image
  int64_t channels;  // C
  int64_t images;    // if rows have separate sums per image, else 1
  int64_t inner;     // elements of a plane; 1 with rows of channels
  int lanes;         // across channels, with rows
  bool rows, vectors;
  int64_t work;                  // rows, or vectors of a channel
  int64_t tiles, chunks, chunk;  // tiles of channels (per image), chunks of `chunk` units of work

  // Number of channels, or of pairs of image and channel.
  BINADE_HD int64_t sums() const { return images * channels; }
  BINADE_HD unsigned blocks() const { return static_cast<unsigned>(tiles * chunks); }
  // Splits the work over about this many blocks.
  void cut(int64_t wanted_blocks) {
    const int64_t parallel = kThreads / lanes;
    chunk = std::clamp(ceil_div(work * tiles, wanted_blocks), 4 * parallel, kChunkRows * parallel);
    chunks = ceil_div(work, chunk);
  }
};

// The block's part of the rows.
struct RowsPart {
  int64_t channel, begin, end;  // first channel of the tile, and rows
  int64_t image;

  __device__ __forceinline__ RowsPart(const ChannelPlan& plan, int values) {
    const int64_t tiles = plan.tiles / plan.images, tile = blockIdx.x % plan.tiles;
    image = plan.images > 1 ? tile / tiles : 0;
    channel = (tile - image * tiles) * plan.lanes * values;
    const int64_t first = blockIdx.x / plan.tiles * plan.chunk;
    const int64_t last = first + plan.chunk < plan.count ? first + plan.chunk : plan.count;
    begin = image * plan.count + first;
    end = image * plan.count + last;
  }
};

// arrays: the tensors of T in this layout that the kernels access, or null.
template <class T, class... P>
ChannelPlan channel_plan(const View& x, bool rows, const P*... arrays) {
  constexpr int kVector = dev::kVectorOf<T>, kValues = kRowValues<T>;
  ChannelPlan p{};
  p.channels = x.size(1);
  p.images = 1;
  p.count = x.numel / p.channels;
  p.inner = rows ? 1 : p.count / x.size(0);
  p.rows = rows;
  p.vectors = (rows ? p.channels : p.inner) % kVector == 0 &&
              ((reinterpret_cast<uintptr_t>(arrays) % 16 == 0) && ...);
  if (rows) {
    const int64_t needed = std::min<int64_t>(ceil_div(p.channels, kValues), 32);
    p.lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(needed)));
    p.tiles = ceil_div(p.channels, int64_t{p.lanes} * kValues);
    p.work = p.count;
  } else {
    p.lanes = 1;
    p.tiles = p.channels;
    p.work = p.vectors ? p.count / kVector : p.count;
  }
  p.cut(ChannelPlan::kSumBlocks);
  return p;
}

// The same for sums per image and channel; `inner` is the number of elements of a plane.
template <class T, class... P>
ChannelPlan image_channel_plan(const View& x, bool rows, int64_t inner, const P*... arrays) {
  const int64_t images = x.size(0), channels = x.size(1);
  ChannelPlan p;
  if (rows) {
    p = channel_plan<T>(x, true, arrays...);
    p.images = images;
    p.tiles *= images;
    p.count = p.work = inner;
  } else {
    View planes = x;
    planes.sizes = Dims{1, images * channels, inner};
    p = channel_plan<T>(planes, false, arrays...);
  }
  p.cut(ChannelPlan::kSumBlocks);
  return p;
}

using ChannelSums = dev::SumPair<double>;

// Sum of x - first and of (x - first)^2, where `first` is the channel's first element: plain sums
// in double, whatever the mean. A thread subtracts its own first element, so that the compute type
// is precise enough there.
template <class T>
struct MomentSums {
  using C = Compute<T>;
  const T* x;

  struct Channel {
    C shift = 0, sum = 0, squares = 0;

    __device__ void start(const MomentSums&, int64_t) {}
    __device__ __forceinline__ void add(C value, C, bool begin) {
      shift = begin ? value : shift;
      const C d = value - shift;
      sum += d;
      squares += d * d;
    }
    __device__ ChannelSums total(const MomentSums& a, int64_t first, int64_t count) const {
      if (count == 0) {
        return {0, 0};
      }
      const double n = static_cast<double>(count), share = static_cast<double>(sum) / n;
      const double mean = static_cast<double>(shift) + share - static_cast<double>(a.x[first]);
      return {n * mean,
              static_cast<double>(squares) - share * static_cast<double>(sum) + n * mean * mean};
    }
  };
  __device__ const T* other() const { return nullptr; }
};

// Calls finish(channel, sums) with the sums of MomentSums. One thread adds a channel whose squares
// exceed float again in double; an infinity or NaN in the channel ends that.
template <class T, class Finish>
struct FinishMoments {
  const T* x;
  ChannelPlan plan;
  Finish finish;

  __device__ double value_at(int64_t channel, int64_t i) const {
    const int64_t image = plan.rows ? channel / plan.channels : 0;
    const int64_t row = plan.rows ? image * plan.count + i : i / plan.inner;
    const int64_t pixel = plan.rows ? 0 : i % plan.inner;
    const int64_t in_row = channel - image * plan.channels;
    return static_cast<double>(x[(row * plan.channels + in_row) * plan.inner + pixel]);
  }
  __device__ ChannelSums in_double(int64_t channel, const ChannelSums& sums) const {
    const double first = value_at(channel, 0);
    ChannelSums wide{0, 0};
    for (int64_t i = 0; i < plan.count; ++i) {
      const double d = value_at(channel, i) - first;
      if (!(std::abs(d) <= std::numeric_limits<double>::max())) {
        return sums;
      }
      wide = wide.merge({d, d * d});
    }
    return wide;
  }
  __device__ void operator()(int64_t channel, const ChannelSums& sums) const {
    const bool wide = sizeof(T) < 8 && !(sums.second <= std::numeric_limits<double>::max());
    finish(channel, wide ? in_double(channel, sums) : sums);
  }
};

// Sum of dy and of dy (x - mean), with one mean per channel or per group of channels.
template <class T>
struct GradientSums {
  using C = Compute<T>;
  const T* x;
  const T* dy;
  const C* mean;
  uint32_t group_channels = 1;

  struct Channel {
    C mean, sum = 0, product = 0;

    __device__ void start(const GradientSums& a, int64_t channel) {
      mean = a.mean[static_cast<uint32_t>(channel) / a.group_channels];
    }
    __device__ __forceinline__ void add(C value, C upstream, bool) {
      sum += upstream;
      product += upstream * (value - mean);
    }
    __device__ ChannelSums total(const GradientSums&, int64_t, int64_t) const {
      return {static_cast<double>(sum), static_cast<double>(product)};
    }
  };
  __device__ const T* other() const { return dy; }
};

template <class T>
struct RowSumsSmem {
  ChannelSums part[kRowValues<T>][ChannelPlan::kThreads / 32][32];
};

// Adds up the warps' sums of each channel of the block. first_sum: the index of the first channel
// among all sums.
template <class T>
__device__ __forceinline__ void store_row_sums(const RowSumsSmem<T>& memory,
                                               const ChannelPlan& plan,
                                               const dev::RowSlots<T>& slots, int64_t first_sum,
                                               ChannelSums* partial) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % plan.lanes;
  if (thread >= plan.lanes * kRowValues<T>) {
    return;
  }
  const int i = thread / plan.lanes;
  ChannelSums total = memory.part[i][0][lane];
  for (int warp = 1; warp < ChannelPlan::kThreads / 32; ++warp) {
    total = total.merge(memory.part[i][warp][lane]);
  }
  if (slots.holds(i)) {
    const int64_t chunk = blockIdx.x / plan.tiles;
    partial[chunk * plan.sums() + first_sum + slots.column(i)] = total;
  }
}

template <class T, class Sums>
__global__ void __launch_bounds__(ChannelPlan::kThreads)
    channel_sums_of_rows_kernel(Sums sums, ChannelPlan plan, ChannelSums* partial) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  constexpr int kValues = Slots::kValues;
  constexpr int kRows = 2;  // in flight, so that fewer threads keep memory busy
  auto& memory = dev::shared_mem<RowSumsSmem<T>>();
  const int thread = static_cast<int>(threadIdx.x), lanes = plan.lanes, lane = thread % lanes;
  const RowsPart part(plan, kValues);
  const int64_t channel = part.channel, left = plan.channels - channel, end = part.end;
  const int64_t first_sum = part.image * plan.channels + channel;
  const Slots slots(static_cast<int>(left < lanes * kValues ? left : lanes * kValues), lanes, lane,
                    plan.vectors);
  typename Sums::Channel all[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    all[i].start(sums, first_sum + (slots.holds(i) ? slots.column(i) : 0));
  }
  const int step = ChannelPlan::kThreads / lanes;
  int64_t count = 0, row = part.begin + thread / lanes;
  C x[kRows][kValues], other[kRows][kValues] = {};
  const auto load = [&](int i) {
    const int64_t at = (row + i * step) * plan.channels + channel;
    slots.load(sums.x + at, C(0), x[i]);
    if (sums.other()) {
      slots.load(sums.other() + at, C(0), other[i]);
    }
  };
  const auto add = [&](int i) {
#pragma unroll
    for (int k = 0; k < kValues; ++k) {
      all[k].add(x[i][k], other[i][k], count == 0);
    }
    ++count;
  };
  for (; row + (kRows - 1) * step < end; row += kRows * step) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      load(i);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      add(i);
    }
  }
  for (; row < end; row += step) {
    load(0);
    add(0);
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const int64_t first = part.image * plan.count * plan.channels + channel;
    ChannelSums total = all[i].total(sums, first + (slots.holds(i) ? slots.column(i) : 0), count);
    for (int offset = lanes; offset < 32; offset *= 2) {
      total = total.merge(dev::shuffle_xor(total, offset));
    }
    memory.part[i][thread / 32][thread % 32] = total;
  }
  __syncthreads();
  store_row_sums<T>(memory, plan, slots, first_sum, partial);
}

// Position of the i-th vector of kWidth elements of a channel.
template <int kWidth>
__device__ __forceinline__ int64_t plane_position(const ChannelPlan& plan, int64_t channel,
                                                  int64_t i) {
  const int64_t per_plane = plan.inner / kWidth;
  return (i / per_plane * plan.channels + channel) * plan.inner + i % per_plane * kWidth;
}

template <class T, int kWidth, class Sums>
__device__ __forceinline__ ChannelSums plane_sums(const Sums& sums, const ChannelPlan& plan,
                                                  int64_t channel, int64_t begin, int64_t end) {
  using C = Compute<T>;
  typename Sums::Channel all;
  all.start(sums, channel);
  int64_t count = 0;
  // 64-bit divisions are function calls, across which an unrolled loop would spill.
#pragma unroll 1
  for (int64_t i = begin + threadIdx.x; i < end; i += ChannelPlan::kThreads) {
    const int64_t at = plane_position<kWidth>(plan, channel, i);
    C x[kWidth], other[kWidth] = {};
    dev::load_as(sums.x + at, x);
    if (sums.other()) {
      dev::load_as(sums.other() + at, other);
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      all.add(x[j], other[j], count == 0);
      ++count;
    }
  }
  return all.total(sums, channel * plan.inner, count);
}

using PlaneSumsSmem = dev::BlockReduceMemory<ChannelSums, ChannelPlan::kThreads>;

template <class T, class Sums>
__global__ void __launch_bounds__(ChannelPlan::kThreads)
    channel_sums_of_planes_kernel(Sums sums, ChannelPlan plan, ChannelSums* partial) {
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<PlaneSumsSmem>();
  const int64_t chunk = blockIdx.x / plan.tiles, channel = blockIdx.x % plan.tiles;
  const int64_t all = plan.vectors ? plan.count / kVector : plan.count;
  const int64_t begin = chunk * plan.chunk;
  const int64_t end = begin + plan.chunk < all ? begin + plan.chunk : all;
  const ChannelSums mine = plan.vectors ? plane_sums<T, kVector>(sums, plan, channel, begin, end)
                                        : plane_sums<T, 1>(sums, plan, channel, begin, end);
  const ChannelSums total = dev::block_reduce<dev::Merge>(mine, memory);
  if (threadIdx.x == 0) {
    partial[chunk * plan.channels + channel] = total;
  }
}

// Adds the chunks of every channel in order and calls finish(channel, sums).
template <class Finish>
__global__ void __launch_bounds__(dev::kColumns* dev::kParts)
    channel_totals_kernel(const ChannelSums* partial, int64_t chunks, int64_t channels,
                          Finish finish) {
  auto& memory = dev::shared_mem<dev::ColumnSmem<ChannelSums>>();
  const int64_t channel = int64_t{blockIdx.x} * dev::kColumns + threadIdx.x;
  ChannelSums total{};
#pragma unroll 8
  for (int64_t i = threadIdx.y; i < (channel < channels ? chunks : 0); i += dev::kParts) {
    total = total.merge(partial[i * channels + channel]);
  }
  total = dev::add_parts(total, memory);
  if (threadIdx.y == 0 && channel < channels) {
    finish(channel, total);
  }
}

template <class T, class Sums, class Finish>
void channel_sums(const Sums& sums, const ChannelPlan& plan, Device device, const Finish& finish) {
  const Workspace memory(static_cast<size_t>(plan.chunks * plan.sums()) * sizeof(ChannelSums),
                         device);
  ChannelSums* partial = memory.as<ChannelSums>();
  if (plan.rows) {
    launch({"channel_sums_of_rows_kernel", plan.blocks(), plan.kThreads, sizeof(RowSumsSmem<T>)},
           channel_sums_of_rows_kernel<T, Sums>, sums, plan, partial);
  } else {
    launch({"channel_sums_of_planes_kernel", plan.blocks(), plan.kThreads, sizeof(PlaneSumsSmem)},
           channel_sums_of_planes_kernel<T, Sums>, sums, plan, partial);
  }
  launch({"channel_totals_kernel", static_cast<unsigned>(ceil_div(plan.sums(), dev::kColumns)),
          dim3(dev::kColumns, dev::kParts), sizeof(dev::ColumnSmem<ChannelSums>)},
         channel_totals_kernel<Finish>, partial, plan.chunks, plan.sums(), finish);
}

// Calls finish(channel, sums of MomentSums) for every channel.
template <class T, class Finish>
void channel_moments(const T* x, const ChannelPlan& plan, Device device, const Finish& finish) {
  channel_sums<T>(MomentSums<T>{x}, plan, device, FinishMoments<T, Finish>{x, plan, finish});
}

}  // namespace binade::kernels
