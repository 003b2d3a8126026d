// Batch norm on the CPU. The tensor is seen as rows [N * spatial, C]; sums are taken per task, a
// task being kTaskRows rows of kTaskChannels channels, and tasks are added up in order in double,
// so the result does not depend on the number of threads.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/moments.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/batch_norm_isa_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::kernels {
namespace {

constexpr int64_t kTaskRows = 1024, kTaskChannels = 64, kElementsPerTask = 16384;

double get(const View& vector, int64_t c) {
  return vector.dtype == DType::f64 ? vector.as<double>()[c]
                                    : static_cast<double>(vector.as<float>()[c]);
}
double get_or(const View& vector, int64_t c, double fallback) {
  return vector ? get(vector, c) : fallback;
}
void set(const View& vector, int64_t c, double value) {
  if (vector.dtype == DType::f64) {
    vector.as<double>()[c] = value;
  } else {
    vector.as<float>()[c] = static_cast<float>(value);
  }
}

// `count` vectors [C] in the compute dtype, in one workspace.
class ChannelVectors {
 public:
  ChannelVectors(int count, int64_t channels, DType dtype)
      : workspace_(static_cast<size_t>(count * channels) * size_of(dtype)),
        channels_(channels),
        dtype_(dtype) {}
  View operator[](int i) const {
    const size_t offset = static_cast<size_t>(i * channels_) * size_of(dtype_);
    return view_of(workspace_.as<std::byte>() + offset, dtype_, Dims{channels_});
  }

 private:
  Workspace workspace_;
  int64_t channels_;
  DType dtype_;
};

struct Shape {
  int64_t rows, channels;
};
Shape shape_of(const View& x) { return {x.size(1) ? x.numel / x.size(1) : 0, x.size(1)}; }

int64_t row_grain(int64_t channels) { return std::max<int64_t>(1, kElementsPerTask / channels); }

// Two doubles per chunk of kTaskRows rows and channel; tasks fill them in any order.
class ChunkSums {
 public:
  explicit ChunkSums(Shape shape)
      : shape_(shape),
        chunks_((shape.rows + kTaskRows - 1) / kTaskRows),
        workspace_(static_cast<size_t>(2 * chunks_ * shape.channels) * sizeof(double)) {}

  int64_t chunks() const { return chunks_; }
  int64_t rows_of(int64_t chunk) const {
    return std::min(kTaskRows, shape_.rows - chunk * kTaskRows);
  }
  double* first(int64_t chunk) const {
    return workspace_.as<double>() + 2 * chunk * shape_.channels;
  }
  double* second(int64_t chunk) const { return first(chunk) + shape_.channels; }

  // Calls task(chunk, channel, channels) for every chunk and range of channels.
  template <class F>
  void for_tasks(F&& task) const {
    const int64_t groups = (shape_.channels + kTaskChannels - 1) / kTaskChannels;
    const int64_t elements =
        std::min(kTaskRows, shape_.rows) * std::min(kTaskChannels, shape_.channels);
    const int64_t grain = std::max<int64_t>(1, kElementsPerTask / elements);
    parallel_for(chunks_ * groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % groups * kTaskChannels;
        task(i / groups, channel, std::min(kTaskChannels, shape_.channels - channel));
      }
    });
  }

 private:
  Shape shape_;
  int64_t chunks_;
  Workspace workspace_;
};

// Calls out(channel, mean, biased variance) for each channel.
template <class F>
void batch_moments(DType dtype, const PackedRows& x, Shape shape, F&& out) {
  const ChunkSums sums(shape);
  const int64_t size = static_cast<int64_t>(size_of(dtype));
  sums.for_tasks([&](int64_t chunk, int64_t channel, int64_t channels) {
    moment_rows_best(MomentRows{.dtype = dtype,
                                .x = x.row(chunk * kTaskRows) + channel * size,
                                .x_stride = x.stride(),
                                .rows = sums.rows_of(chunk),
                                .channels = channels,
                                .mean = sums.first(chunk) + channel,
                                .deviations = sums.second(chunk) + channel});
  });
  for (int64_t c = 0; c < shape.channels; ++c) {
    Moments<double> all;
    for (int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
      const auto n = static_cast<double>(sums.rows_of(chunk));
      all = all.merge({n, sums.first(chunk)[c], sums.second(chunk)[c]});
    }
    const double variance = all.deviations / static_cast<double>(shape.rows);
    out(c, all.mean, variance < 0 ? 0 : variance);  // NaN stays
  }
}

// The upstream gradient; after relu also its output y and, if wanted, the gradient before relu dz.
struct Upstream {
  const PackedRows& dy;
  const PackedRows* y = nullptr;
  const PackedRows* dz = nullptr;  // written by gradient_sums()
};

std::byte* row_of(const PackedRows* rows, int64_t index) {
  return rows ? rows->row(index) : nullptr;
}
int64_t stride_of(const PackedRows* rows) { return rows ? rows->stride() : 0; }

// Calls out(channel, sum of dz, sum of dz (x - mean)) for each channel, where dz is dy, or after
// relu the gradient before it.
template <class F>
void gradient_sums(const PackedRows& x, const Upstream& upstream, const View& mean, DType dtype,
                   Shape shape, F&& out) {
  const ChunkSums sums(shape);
  const int64_t size = static_cast<int64_t>(size_of(dtype));
  sums.for_tasks([&](int64_t chunk, int64_t channel, int64_t channels) {
    const auto at = [&](const PackedRows* rows) {
      return rows ? rows->row(chunk * kTaskRows) + channel * size : nullptr;
    };
    gradient_sum_rows_best(GradientSumRows{.dtype = dtype,
                                           .x = at(&x),
                                           .dy = at(&upstream.dy),
                                           .x_stride = x.stride(),
                                           .dy_stride = upstream.dy.stride(),
                                           .rows = sums.rows_of(chunk),
                                           .channels = channels,
                                           .mean = element(mean, channel),
                                           .sum_dy = sums.first(chunk) + channel,
                                           .sum_dy_x = sums.second(chunk) + channel,
                                           .y = at(upstream.y),
                                           .dz = at(upstream.dz),
                                           .y_stride = stride_of(upstream.y),
                                           .dz_stride = stride_of(upstream.dz)});
  });
  for (int64_t c = 0; c < shape.channels; ++c) {
    double sum_dy = 0, sum_dy_x = 0;
    for (int64_t chunk = 0; chunk < sums.chunks(); ++chunk) {
      sum_dy += sums.first(chunk)[c];
      sum_dy_x += sums.second(chunk)[c];
    }
    out(c, sum_dy, sum_dy_x);
  }
}

// The operations after the normalisation: a residual to add, if any, and relu if set.
struct Epilogue {
  const PackedRows* residual = nullptr;
  bool relu = false;
};

// (x - mean) scale + bias, per channel.
struct ChannelMap {
  const View &mean, &scale, &bias;
};

// y = the map of x for all rows, then the epilogue.
void normalize(const PackedRows& x, const PackedRows& y, DType dtype, Shape shape,
               const ChannelMap& map, const Epilogue& epilogue = {}) {
  parallel_for(shape.rows, row_grain(shape.channels), [&](int64_t begin, int64_t end) {
    normalize_rows_best(NormalizeRows{.dtype = dtype,
                                      .x = x.row(begin),
                                      .y = y.row(begin),
                                      .x_stride = x.stride(),
                                      .y_stride = y.stride(),
                                      .rows = end - begin,
                                      .channels = shape.channels,
                                      .mean = map.mean.data,
                                      .scale = map.scale.data,
                                      .bias = map.bias.data,
                                      .residual = row_of(epilogue.residual, begin),
                                      .residual_stride = stride_of(epilogue.residual),
                                      .relu = epilogue.relu});
  });
}

}  // namespace

Moments<double> moments_in_double(DType dtype, const void* x, int64_t stride, int64_t rows) {
  Moments<double> all{.count = static_cast<double>(rows)};
  dispatch_floating("moments", dtype, [&]<class T>(Type<T>) {
    const auto value = [&](int64_t row) {
      return static_cast<double>(static_cast<Compute<T>>(static_cast<const T*>(x)[row * stride]));
    };
    for (int64_t row = 0; row < rows; ++row) {
      all.mean += value(row) / all.count;
    }
    for (int64_t row = 0; row < rows; ++row) {
      all.deviations += (value(row) - all.mean) * (value(row) - all.mean);
    }
  });
  return all;
}

void cpu::batch_norm_forward(const BatchNormForward& a) {
  check_arguments(a);
  const Shape shape = shape_of(a.x);
  const DType compute = compute_dtype(a.x.dtype);
  if (a.x.numel == 0) {
    return;
  }
  const PackedRows x(a.x, 1, Access::read), y(a.y, 1, Access::write);
  const PackedRows residual(a.residual, 1, Access::read);
  const ChannelVectors vectors(2, shape.channels, compute);
  const View scale = vectors[0], bias = vectors[1];
  batch_moments(a.x.dtype, x, shape, [&](int64_t c, double mean, double variance) {
    const double rstd = 1 / std::sqrt(variance + a.eps);
    set(a.mean, c, mean);
    set(a.rstd, c, rstd);
    if (a.variance) {
      set(a.variance, c, variance);
    }
    if (a.mean_rest) {
      set(a.mean_rest, c, mean - get(a.mean, c));
    }
    set(scale, c, get_or(a.weight, c, 1) * rstd);
    set(bias, c, get_or(a.bias, c, 0));
  });
  normalize(x, y, a.x.dtype, shape, {a.mean, scale, bias},
            {.residual = a.residual ? &residual : nullptr, .relu = a.relu});
  y.unpack();
}

void cpu::batch_norm_inference(const BatchNormInference& a) {
  check_arguments(a);
  const Shape shape = shape_of(a.x);
  const DType compute = compute_dtype(a.x.dtype);
  if (a.x.numel == 0) {
    return;
  }
  const PackedRows x(a.x, 1, Access::read), y(a.y, 1, Access::write);
  const PackedRows residual(a.residual, 1, Access::read);
  const ChannelVectors vectors(2, shape.channels, compute);
  const View scale = vectors[0], bias = vectors[1];
  for (int64_t c = 0; c < shape.channels; ++c) {
    set(scale, c, get_or(a.weight, c, 1) / std::sqrt(get(a.running_var, c) + a.eps));
    set(bias, c, get_or(a.bias, c, 0));
  }
  normalize(x, y, a.x.dtype, shape, {a.running_mean, scale, bias},
            {.residual = a.residual ? &residual : nullptr, .relu = a.relu});
  y.unpack();
}

void cpu::batch_norm_running(const BatchNormRunning& a) {
  check_arguments(a);
  const int64_t channels = a.running_mean.numel;
  const double n = static_cast<double>(a.count), unbiased = n / (n - 1);
  for (int64_t c = 0; c < channels; ++c) {
    const double variance = get(a.variance, c) * unbiased;
    set(a.running_mean, c, (1 - a.momentum) * get(a.running_mean, c) + a.momentum * get(a.mean, c));
    set(a.running_var, c, (1 - a.momentum) * get(a.running_var, c) + a.momentum * variance);
  }
}

namespace {

// Gradients of an empty batch are 0.
void clear_sums(const View& dweight, const View& dbias) {
  for (const View* vector : {&dweight, &dbias}) {
    for (int64_t c = 0; *vector && c < vector->numel; ++c) {
      set(*vector, c, 0);
    }
  }
}

}  // namespace

void cpu::batch_norm_backward(const BatchNormBackward& a) {
  check_arguments(a);
  const Shape shape = shape_of(a.x);
  const DType compute = compute_dtype(a.x.dtype);
  if (a.x.numel == 0) {
    return clear_sums(a.dweight, a.dbias);
  }
  const PackedRows x(a.x, 1, Access::read), dy(a.dy, 1, Access::read), dx(a.dx, 1, Access::write);
  const PackedRows y(a.y, 1, Access::read), dz(a.dresidual, 1, Access::write);
  const Upstream upstream{.dy = dy, .y = a.y ? &y : nullptr, .dz = a.dresidual ? &dz : nullptr};
  const ChannelVectors vectors(3, shape.channels, compute);
  const View scale = vectors[0], dy_mean = vectors[1], slope = vectors[2];
  const double count = static_cast<double>(shape.rows);
  gradient_sums(x, upstream, a.mean, a.x.dtype, shape,
                [&](int64_t c, double sum_dy, double sum_dy_x) {
                  const double rstd = get(a.rstd, c);
                  if (a.dweight) {
                    set(a.dweight, c, sum_dy_x * rstd);
                  }
                  if (a.dbias) {
                    set(a.dbias, c, sum_dy);
                  }
                  set(scale, c, get_or(a.weight, c, 1) * rstd);
                  set(dy_mean, c, sum_dy / count);
                  set(slope, c, sum_dy_x * rstd * rstd / count);
                });
  dz.unpack();
  if (!a.dx) {
    return;
  }
  // If dresidual is wanted, gradient_sums() has written the gradient before relu there.
  const PackedRows& gradient = a.dresidual ? dz : dy;
  const PackedRows* gate = a.dresidual ? nullptr : upstream.y;
  parallel_for(shape.rows, row_grain(shape.channels), [&](int64_t begin, int64_t end) {
    normalize_rows_backward_best(NormalizeRowsBackward{.dtype = a.x.dtype,
                                                       .x = x.row(begin),
                                                       .dy = gradient.row(begin),
                                                       .dx = dx.row(begin),
                                                       .x_stride = x.stride(),
                                                       .dy_stride = gradient.stride(),
                                                       .dx_stride = dx.stride(),
                                                       .rows = end - begin,
                                                       .channels = shape.channels,
                                                       .mean = a.mean.data,
                                                       .scale = scale.data,
                                                       .dy_mean = dy_mean.data,
                                                       .slope = slope.data,
                                                       .y = row_of(gate, begin),
                                                       .y_stride = stride_of(gate)});
  });
  dx.unpack();
}

void cpu::batch_norm_inference_backward(const BatchNormInferenceBackward& a) {
  check_arguments(a);
  const Shape shape = shape_of(a.x);
  const DType compute = compute_dtype(a.x.dtype);
  if (a.x.numel == 0) {
    return clear_sums(a.dweight, a.dbias);
  }
  const PackedRows dy(a.dy, 1, Access::read);
  const auto rstd = [&](int64_t c) { return 1 / std::sqrt(get(a.running_var, c) + a.eps); };
  if (a.dweight || a.dbias) {
    const PackedRows x(a.x, 1, Access::read);
    gradient_sums(x, {.dy = dy}, a.running_mean, a.x.dtype, shape,
                  [&](int64_t c, double sum_dy, double sum_dy_x) {
                    if (a.dweight) {
                      set(a.dweight, c, sum_dy_x * rstd(c));
                    }
                    if (a.dbias) {
                      set(a.dbias, c, sum_dy);
                    }
                  });
  }
  if (!a.dx) {
    return;
  }
  const PackedRows dx(a.dx, 1, Access::write);
  const ChannelVectors vectors(2, shape.channels, compute);
  const View scale = vectors[0], zero = vectors[1];
  for (int64_t c = 0; c < shape.channels; ++c) {
    set(scale, c, get_or(a.weight, c, 1) * rstd(c));
    set(zero, c, 0);
  }
  normalize(dy, dx, a.x.dtype, shape, {zero, scale, zero});
  dx.unpack();
}

}  // namespace binade::kernels
