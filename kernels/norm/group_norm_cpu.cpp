// Group norm on the CPU. A group whose planes stay in a near cache is computed whole by one task
// (is_near), which reads it from memory once. For other groups memory is planes [N, C, inner]
// if x is row-major and its planes are not tiny, else rows [N * inner, C]. A task sums
// kTaskElements elements of kTaskChannels channels of an image, two sums per channel. The sums of
// tasks are added in order in double, then those of channels to groups. The second half maps each
// channel of each image with its own coefficients.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/moments.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/norm/group_norm_internal.h>
#include <binade/kernels/norm/group_norm_isa_internal.h>
#include <binade/kernels/norm/group_norm_layout_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::kernels {
namespace {

constexpr int64_t kTaskElements = 4096, kTaskChannels = 64, kWorkPerTask = 16384;
constexpr int64_t kSmallPlane = 16;

double get(const View& vector, int64_t i) {
  return vector.dtype == DType::f64 ? vector.as<double>()[i]
                                    : static_cast<double>(vector.as<float>()[i]);
}
double get_or(const View& vector, int64_t i, double fallback) {
  return vector ? get(vector, i) : fallback;
}
void set(const View& vector, int64_t i, double value) {
  if (vector.dtype == DType::f64) {
    vector.as<double>()[i] = value;
  } else {
    vector.as<float>()[i] = static_cast<float>(value);
  }
}

// `count` vectors [N, C] in the compute dtype, in one workspace.
class ChannelVectors {
 public:
  ChannelVectors(int count, const GroupNormSizes& d, DType dtype)
      : planes_(d.images * d.channels),
        dtype_(dtype),
        workspace_(static_cast<size_t>(count * planes_) * size_of(dtype)) {}
  View operator[](int i) const { return view_of(data(i, 0), dtype_, Dims{planes_}); }
  std::byte* data(int i, int64_t plane) const {
    return workspace_.as<std::byte>() +
           (i * planes_ + plane) * static_cast<int64_t>(size_of(dtype_));
  }

 private:
  int64_t planes_;
  DType dtype_;
  Workspace workspace_;
};

// Two doubles per image, chunk of pixels and channel; tasks fill them in any order.
class ChunkSums {
 public:
  explicit ChunkSums(const GroupNormSizes& d)
      : d_(d),
        chunks_((d.inner + kTaskElements - 1) / kTaskElements),
        workspace_(static_cast<size_t>(2 * d.images * chunks_ * d.channels) * sizeof(double)) {}

  int64_t chunks() const { return chunks_; }
  int64_t pixels_of(int64_t chunk) const {
    return std::min(kTaskElements, d_.inner - chunk * kTaskElements);
  }
  double* first(int64_t image, int64_t chunk) const {
    return workspace_.as<double>() + 2 * (image * chunks_ + chunk) * d_.channels;
  }
  double* second(int64_t image, int64_t chunk) const { return first(image, chunk) + d_.channels; }

  // Calls task(image, chunk, channel, channels) for all of them.
  template <class F>
  void for_tasks(F&& task) const {
    const int64_t tiles = (d_.channels + kTaskChannels - 1) / kTaskChannels;
    const int64_t elements =
        std::min(kTaskElements, d_.inner) * std::min(kTaskChannels, d_.channels);
    const int64_t grain = std::max<int64_t>(1, kWorkPerTask / elements);
    parallel_for(d_.images * chunks_ * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % tiles * kTaskChannels, chunk = i / tiles % chunks_;
        task(i / tiles / chunks_, chunk, channel, std::min(kTaskChannels, d_.channels - channel));
      }
    });
  }

 private:
  const GroupNormSizes& d_;
  int64_t chunks_;
  Workspace workspace_;
};

// Calls f(image, group) for all groups, on several threads.
template <class F>
void for_groups(const GroupNormSizes& d, int64_t chunks, F&& f) {
  const int64_t grain = std::max<int64_t>(1, kWorkPerTask / (d.group_channels * (chunks + 1)));
  parallel_for(d.images * d.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      f(i / d.groups, i % d.groups);
    }
  });
}

bool by_planes(const View& x, const GroupNormSizes& d) {
  return x.contiguous && d.inner >= kSmallPlane;
}

// Computes mean and rstd, and per image and channel the mean, scale and bias of the map.
void find_moments(const GroupNormForward& a, const GroupNormSizes& d, const GroupNormLayout& x,
                  const ChannelVectors& map) {
  const ChunkSums sums(d);
  sums.for_tasks([&](int64_t image, int64_t chunk, int64_t channel, int64_t channels) {
    const MomentRows part{.dtype = a.x.dtype,
                          .x = x.at(image, channel, chunk * kTaskElements),
                          .x_stride = x.stride(),
                          .rows = sums.pixels_of(chunk),
                          .channels = channels,
                          .mean = sums.first(image, chunk) + channel,
                          .deviations = sums.second(image, chunk) + channel};
    x.planes() ? moment_planes_best(part) : moment_rows_best(part);
  });
  const View mean = map[0], scale = map[1], bias = map[2];
  for_groups(d, sums.chunks(), [&](int64_t image, int64_t group) {
    const int64_t begin = group * d.group_channels, end = begin + d.group_channels;
    Moments<double> all;
    for (int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
      const double n = static_cast<double>(sums.pixels_of(chunk));
      for (int64_t c = begin; c < end; ++c) {
        all = all.merge({n, sums.first(image, chunk)[c], sums.second(image, chunk)[c]});
      }
    }
    const double variance = all.deviations / all.count;
    const double rstd = 1 / std::sqrt((variance < 0 ? 0 : variance) + a.eps);  // NaN stays
    set(a.mean, image * d.groups + group, all.mean);
    set(a.rstd, image * d.groups + group, rstd);
    for (int64_t c = begin; c < end; ++c) {
      const int64_t plane = image * d.channels + c;
      set(mean, plane, all.mean);
      set(scale, plane, get_or(a.weight, c, 1) * rstd);
      set(bias, plane, get_or(a.bias, c, 0));
    }
  });
}

// Per image and channel sum dy and sum dy (x - mean).
void find_gradient_sums(const GroupNormBackward& a, const GroupNormSizes& d,
                        const GroupNormLayout& x, const GroupNormLayout& dy,
                        const ChannelVectors& map, const ChunkSums& sums) {
  sums.for_tasks([&](int64_t image, int64_t chunk, int64_t channel, int64_t channels) {
    const GradientSumRows part{.dtype = a.x.dtype,
                               .x = x.at(image, channel, chunk * kTaskElements),
                               .dy = dy.at(image, channel, chunk * kTaskElements),
                               .x_stride = x.stride(),
                               .dy_stride = dy.stride(),
                               .rows = sums.pixels_of(chunk),
                               .channels = channels,
                               .mean = map.data(0, image * d.channels + channel),
                               .sum_dy = sums.first(image, chunk) + channel,
                               .sum_dy_x = sums.second(image, chunk) + channel};
    x.planes() ? gradient_sum_planes_best(part) : gradient_sum_rows_best(part);
  });
  // Adds all chunks to the first one.
  for_groups(d, sums.chunks(), [&](int64_t image, int64_t group) {
    for (int64_t c = group * d.group_channels; c < (group + 1) * d.group_channels; ++c) {
      for (int64_t chunk = 1; chunk < sums.chunks(); ++chunk) {
        sums.first(image, 0)[c] += sums.first(image, chunk)[c];
        sums.second(image, 0)[c] += sums.second(image, chunk)[c];
      }
    }
  });
}

// Computes scale, shift and slope of the map from the sums.
void find_backward_map(const GroupNormBackward& a, const GroupNormSizes& d, const ChunkSums& sums,
                       const ChannelVectors& map) {
  const View scale = map[1], shift = map[2], slope = map[3];
  const double count = static_cast<double>(d.group_count());
  for_groups(d, 1, [&](int64_t image, int64_t group) {
    const int64_t begin = group * d.group_channels, end = begin + d.group_channels;
    double g = 0, gx = 0;
    for (int64_t c = begin; c < end; ++c) {
      g += get_or(a.weight, c, 1) * sums.first(image, 0)[c];
      gx += get_or(a.weight, c, 1) * sums.second(image, 0)[c];
    }
    const double rstd = get(a.rstd, image * d.groups + group);
    for (int64_t c = begin; c < end; ++c) {
      const int64_t plane = image * d.channels + c;
      set(scale, plane, get_or(a.weight, c, 1) * rstd);
      set(shift, plane, rstd * g / count);
      set(slope, plane, rstd * rstd * rstd * gx / count);
    }
  });
}

void find_parameter_gradients(const GroupNormBackward& a, const GroupNormSizes& d,
                              const ChunkSums* sums) {
  for (int64_t c = 0; c < d.channels && (a.dweight || a.dbias); ++c) {
    double dweight = 0, dbias = 0;
    for (int64_t image = 0; image < d.images && sums; ++image) {
      const double rstd = get(a.rstd, image * d.groups + c / d.group_channels);
      dweight += sums->second(image, 0)[c] * rstd;
      dbias += sums->first(image, 0)[c];
    }
    if (a.dweight) {
      set(a.dweight, c, dweight);
    }
    if (a.dbias) {
      set(a.dbias, c, dbias);
    }
  }
}

// True if x and, in the backward, dy stay in a near cache from the sums of a group to its map. The
// second condition keeps all threads of a machine busy.
bool is_near(const GroupNormSizes& d, bool planes) {
  constexpr int64_t kNearElements = 65'536, kManyGroups = 64, kFewElements = 8'192;
  return planes && d.group_count() <= kNearElements &&
         (d.images * d.groups >= kManyGroups || d.group_count() <= kFewElements);
}

bool is_large(const View& result) {
  return result.numel * static_cast<int64_t>(size_of(result.dtype)) >= kNontemporalBytes;
}

// Calls f(group of an image, GroupPlanes, its first channel, offset of its first byte).
template <class Arguments, class F>
void for_near_groups(const Arguments& a, const GroupNormSizes& d, const F& f) {
  const auto size = static_cast<int64_t>(size_of(a.x.dtype));
  const int64_t grain = std::max<int64_t>(1, kWorkPerTask / d.group_count());
  parallel_for(d.images * d.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % d.groups * d.group_channels, at = i * d.group_count() * size;
      f(GroupPlanes{.dtype = a.x.dtype,
                    .x = a.x.data + at,
                    .inner = d.inner,
                    .channels = d.group_channels,
                    .weight = element(a.weight, channel),
                    .mean = element(a.mean, i),
                    .rstd = element(a.rstd, i)},
        i / d.groups, channel, at);
    }
  });
}

// Calls f(image, channel, channels, pixel, pixels) for parts of the tensor, on several threads:
// planes, or all channels of some rows.
template <class F>
void for_parts(const GroupNormSizes& d, bool planes, F&& f) {
  const int64_t chunk = planes ? d.inner : std::max<int64_t>(1, kWorkPerTask / d.channels);
  const int64_t channels = planes ? std::max<int64_t>(1, kWorkPerTask / d.inner) : d.channels;
  const int64_t chunks = (d.inner + chunk - 1) / chunk;
  const int64_t tiles = (d.channels + channels - 1) / channels;
  parallel_for(d.images * chunks * tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % tiles * channels, pixel = i / tiles % chunks * chunk;
      f(i / tiles / chunks, channel, std::min(channels, d.channels - channel), pixel,
        std::min(chunk, d.inner - pixel));
    }
  });
}

}  // namespace

void cpu::group_norm_forward(const GroupNormForward& a) {
  const GroupNormSizes d = checked_sizes(a);
  if (a.x.numel == 0) {
    return;
  }
  const bool planes = by_planes(a.x, d);
  if (is_near(d, planes) && a.y.contiguous) {
    return for_near_groups(
        a, d, [&](const GroupPlanes& group, int64_t, int64_t channel, int64_t at) {
          group_norm_planes_best(GroupPlanesForward{.group = group,
                                                    .bias = element(a.bias, channel),
                                                    .y = a.y.data + at,
                                                    .eps = a.eps,
                                                    .nontemporal = is_large(a.y)});
        });
  }
  const GroupNormLayout x(a.x, planes, d, Access::read), y(a.y, planes, d, Access::write);
  const ChannelVectors map(3, d, a.mean.dtype);
  find_moments(a, d, x, map);
  for_parts(d, planes,
            [&](int64_t image, int64_t channel, int64_t channels, int64_t pixel, int64_t pixels) {
              const int64_t plane = image * d.channels + channel;
              const NormalizeRows part{.dtype = a.x.dtype,
                                       .x = x.at(image, channel, pixel),
                                       .y = y.at(image, channel, pixel),
                                       .x_stride = x.stride(),
                                       .y_stride = y.stride(),
                                       .rows = pixels,
                                       .channels = channels,
                                       .mean = map.data(0, plane),
                                       .scale = map.data(1, plane),
                                       .bias = map.data(2, plane)};
              planes ? normalize_planes_best(part) : normalize_rows_best(part);
            });
  y.unpack();
}

void cpu::group_norm_backward(const GroupNormBackward& a) {
  const GroupNormSizes d = checked_sizes(a);
  if (a.x.numel == 0) {
    return find_parameter_gradients(a, d, nullptr);
  }
  const bool planes = by_planes(a.x, d);
  if (is_near(d, planes) && a.dy.contiguous && (!a.dx || a.dx.contiguous)) {
    const ChunkSums sums(d);
    for_near_groups(a, d,
                    [&](const GroupPlanes& group, int64_t image, int64_t channel, int64_t at) {
                      group_norm_planes_backward_best(
                          GroupPlanesBackward{.group = group,
                                              .dy = a.dy.data + at,
                                              .dx = a.dx ? a.dx.data + at : nullptr,
                                              .sum_dy = sums.first(image, 0) + channel,
                                              .sum_dy_x = sums.second(image, 0) + channel,
                                              .nontemporal = is_large(a.dx)});
                    });
    return find_parameter_gradients(a, d, &sums);
  }
  const GroupNormLayout x(a.x, planes, d, Access::read), dy(a.dy, planes, d, Access::read),
      dx(a.dx, planes, d, Access::write);
  const ChannelVectors map(4, d, a.mean.dtype);
  for (int64_t i = 0; i < d.images * d.channels; ++i) {
    set(map[0], i, get(a.mean, i / d.group_channels));
  }
  const ChunkSums sums(d);
  find_gradient_sums(a, d, x, dy, map, sums);
  find_parameter_gradients(a, d, &sums);
  if (!a.dx) {
    return;
  }
  find_backward_map(a, d, sums, map);
  for_parts(d, planes,
            [&](int64_t image, int64_t channel, int64_t channels, int64_t pixel, int64_t pixels) {
              const int64_t plane = image * d.channels + channel;
              const GroupNormBackwardMap part{.dtype = a.x.dtype,
                                              .x = x.at(image, channel, pixel),
                                              .dy = dy.at(image, channel, pixel),
                                              .dx = dx.at(image, channel, pixel),
                                              .x_stride = x.stride(),
                                              .dy_stride = dy.stride(),
                                              .dx_stride = dx.stride(),
                                              .rows = pixels,
                                              .channels = channels,
                                              .mean = map.data(0, plane),
                                              .scale = map.data(1, plane),
                                              .shift = map.data(2, plane),
                                              .slope = map.data(3, plane)};
              planes ? group_norm_backward_planes_best(part) : group_norm_backward_rows_best(part);
            });
  dx.unpack();
}

}  // namespace binade::kernels
