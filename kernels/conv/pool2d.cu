// Pooling. A thread computes one output pixel (forward) or one input pixel (backward). The backward
// gathers, so that sums have a fixed order without atomics. A thread has 16 bytes of channels if
// every operand is channels-last and aligned, else one channel. Neighbouring threads take
// neighbouring channels of a channels-last result and neighbouring columns of a row-major one;
// windows overlap in the cache. Operands may have any strides.
#include <binade/kernels/conv/pool2d_internal.h>
#include <binade/kernels/cuda/vector.cuh>

#include <limits>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

// A tensor [N, C, H, W] with any strides.
template <class T>
struct Image {
  T* data;
  int64_t n, c, h, w;  // strides

  explicit Image(const View& view)
      : data(view.as<T>()),
        n(view ? view.strides[0] : 0),
        c(view ? view.strides[1] : 0),
        h(view ? view.strides[2] : 0),
        w(view ? view.strides[3] : 0) {}
  __device__ __forceinline__ T* at(int64_t in, int64_t ic, int64_t ih, int64_t iw) const {
    return data + in * n + ic * c + ih * h + iw * w;
  }
};

// i / d with the remainder in i; a 32-bit division where that is enough.
__device__ __forceinline__ int64_t take_quotient(int64_t& i, int64_t d) {
  const int64_t quotient =
      (i | d) >> 32 == 0 ? static_cast<uint32_t>(i) / static_cast<uint32_t>(d) : i / d;
  i -= quotient * d;
  return quotient;
}

// The pixels that threads compute, in the order of the result's memory: `groups` groups of channels
// per pixel.
struct Work {
  int64_t images, groups, rows, cols;
  bool channels_last;

  BINADE_HD int64_t count() const { return images * groups * rows * cols; }

  struct Item {
    int64_t n, group, row, col;
  };
  __device__ __forceinline__ Item item(int64_t i) const {
    Item at;
    if (channels_last) {
      at.n = take_quotient(i, rows * cols * groups);
      at.row = take_quotient(i, cols * groups);
      at.col = take_quotient(i, groups);
      at.group = i;
    } else {
      at.n = take_quotient(i, groups * rows * cols);
      at.group = take_quotient(i, rows * cols);
      at.row = take_quotient(i, cols);
      at.col = i;
    }
    return at;
  }
};

template <class F>
__device__ __forceinline__ void for_items(const Work& work, F&& f) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < work.count();
       i += int64_t{gridDim.x} * kThreads) {
    f(work.item(i));
  }
}

// The first tap of a window from `start` that is not before the input.
__device__ __forceinline__ int64_t first_tap(int64_t start, int64_t dilation) {
  int64_t before = start < 0 ? dilation - 1 - start : 0;
  return take_quotient(before, dilation);
}

template <class T, class I, int kWidth>
__global__ void __launch_bounds__(kThreads)
    max_pool2d_forward_thread_per_output_kernel(Image<const T> x, Image<T> y, Image<I> index,
                                                PoolWindows height, PoolWindows width, Work work) {
  using C = Compute<T>;
  for_items(work, [&](const Work::Item& at) {
    const int64_t channel = at.group * kWidth;
    const int64_t top = at.row * height.stride - height.padding;
    const int64_t left = at.col * width.stride - width.padding;
    C best[kWidth] = {};
    I where[kWidth] = {};
    bool first = true;
    const int64_t row = first_tap(top, height.dilation), col = first_tap(left, width.dilation);
    for (int64_t i = row; i < height.kernel && top + i * height.dilation < height.inputs; ++i) {
      const int64_t h = top + i * height.dilation;
      for (int64_t j = col; j < width.kernel && left + j * width.dilation < width.inputs; ++j) {
        const int64_t w = left + j * width.dilation;
        C v[kWidth];
        dev::load_as(x.at(at.n, channel, h, w), v);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          // v is larger, or v is the first NaN.
          if (first || (!(v[k] <= best[k]) && best[k] == best[k])) {
            best[k] = v[k];
            where[k] = static_cast<I>(i * width.kernel + j);
          }
        }
        first = false;
      }
    }
    if (first) {  // only padding
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        best[k] = -std::numeric_limits<C>::infinity();
        where[k] = 0;
      }
    }
    dev::store_from(y.at(at.n, channel, at.row, at.col), best);
    if (index.data) {
      dev::store_from(index.at(at.n, channel, at.row, at.col), where);
    }
  });
}

template <class T, class I, int kWidth>
__global__ void __launch_bounds__(kThreads)
    max_pool2d_backward_thread_per_input_kernel(Image<const T> dy, Image<const I> index,
                                                Image<T> dx, PoolWindows height, PoolWindows width,
                                                Work work) {
  using C = Compute<T>;
  for_items(work, [&](const Work::Item& at) {
    const int64_t channel = at.group * kWidth;
    const PoolSpan rows = height.cover(at.row), cols = width.cover(at.col);
    C sum[kWidth] = {};
    // Divisions of 64 bits are calls, across which an unrolled loop would spill.
#pragma unroll 1
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      const int64_t down = at.row + height.padding - p * height.stride;
#pragma unroll 1
      for (int64_t q = cols.begin; q < cols.end; ++q) {
        const int64_t across = at.col + width.padding - q * width.stride;
        int64_t i = down, j = across;
        if (height.dilation != 1 || width.dilation != 1) {
          i = down / height.dilation;
          j = across / width.dilation;
          if (i * height.dilation != down || j * width.dilation != across) {
            continue;  // between the taps
          }
        }
        const int place = static_cast<int>(i * width.kernel + j);
        uint32_t chosen[kWidth];
        C g[kWidth];
        dev::load_as(index.at(at.n, channel, p, q), chosen);
        dev::load_as(dy.at(at.n, channel, p, q), g);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          sum[k] += static_cast<int>(chosen[k]) == place ? g[k] : C(0);
        }
      }
    }
    dev::store_from(dx.at(at.n, channel, at.row, at.col), sum);
  });
}

// A sum of terms that are added one by one. A long sum is in the compute type over kPoolSumBlock
// terms and in double over these blocks.
template <class C, int kWidth, bool kLong>
struct PoolSum {
  C sum[kWidth] = {};
  double total[kLong ? kWidth : 1] = {};
  int64_t terms = 0;

  __device__ __forceinline__ void add(const C (&v)[kWidth]) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      sum[k] += v[k];
    }
    if (kLong && ++terms % kPoolSumBlock == 0) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        total[kLong ? k : 0] += static_cast<double>(sum[k]);
        sum[k] = 0;
      }
    }
  }
  __device__ __forceinline__ void finish(C divisor) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      sum[k] = kLong ? static_cast<C>(total[kLong ? k : 0] + static_cast<double>(sum[k])) : sum[k];
      sum[k] /= divisor;
    }
  }
};

template <class T, int kWidth, bool kLong>
__global__ void __launch_bounds__(kThreads)
    avg_pool2d_forward_thread_per_output_kernel(Image<const T> x, Image<T> y, PoolWindows height,
                                                PoolWindows width, Work work) {
  using C = Compute<T>;
  for_items(work, [&](const Work::Item& at) {
    const int64_t channel = at.group * kWidth;
    const PoolSpan rows = height.window(at.row), cols = width.window(at.col);
    PoolSum<C, kWidth, kLong> sum;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = cols.begin; j < cols.end; ++j) {
        C v[kWidth];
        dev::load_as(x.at(at.n, channel, i, j), v);
        sum.add(v);
      }
    }
    sum.finish(static_cast<C>(rows.count * cols.count));
    dev::store_from(y.at(at.n, channel, at.row, at.col), sum.sum);
  });
}

template <class T, int kWidth, bool kLong>
__global__ void __launch_bounds__(kThreads)
    avg_pool2d_backward_thread_per_input_kernel(Image<const T> dy, Image<T> dx, PoolWindows height,
                                                PoolWindows width, Work work) {
  using C = Compute<T>;
  for_items(work, [&](const Work::Item& at) {
    const int64_t channel = at.group * kWidth;
    const PoolSpan rows = height.cover(at.row), cols = width.cover(at.col);
    PoolSum<C, kWidth, kLong> sum;
    // Divisions of 64 bits are calls, across which an unrolled loop would spill.
#pragma unroll 1
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      const int64_t row_count = height.window(p).count;
#pragma unroll 1
      for (int64_t q = cols.begin; q < cols.end; ++q) {
        const C count = static_cast<C>(row_count * width.window(q).count);
        C g[kWidth];
        dev::load_as(dy.at(at.n, channel, p, q), g);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          g[k] /= count;
        }
        sum.add(g);
      }
    }
    sum.finish(C(1));
    dev::store_from(dx.at(at.n, channel, at.row, at.col), sum.sum);
  });
}

// launchers ---------------------------------------------------------------------------------------

// True if `width` neighbouring channels of every pixel are one aligned vector.
bool has_vectors(const View& view, int64_t width) {
  if (!view) {
    return true;
  }
  bool aligned = view.size(1) % width == 0 && view.strides[1] == 1;
  for (int i : {0, 2, 3}) {
    aligned = aligned && (view.size(i) == 1 || view.strides[i] % width == 0);
  }
  const size_t bytes = std::min<size_t>(16, static_cast<size_t>(width) * size_of(view.dtype));
  return aligned && reinterpret_cast<uintptr_t>(view.data) % bytes == 0;
}

// Calls f(type, width, work) for one thread per pixel and channel group of `result`.
template <class F>
void for_result(const char* op, const View& result, std::initializer_list<const View*> operands,
                F&& f) {
  dispatch_floating(op, result.dtype, [&]<class T>(Type<T> type) {
    constexpr int kVector = dev::kVectorOf<T>;
    bool vectors = has_vectors(result, kVector);
    for (const View* view : operands) {
      vectors = vectors && has_vectors(*view, kVector);
    }
    const bool channels_last = vectors || result.strides[1] < result.strides[3];
    Work work{result.size(0), result.size(1), result.size(2), result.size(3), channels_last};
    if (vectors) {
      work.groups /= kVector;
      f(type, std::integral_constant<int, kVector>(), work);
    } else {
      f(type, std::integral_constant<int, 1>(), work);
    }
  });
}

// Calls f(type of the index) for pool2d_index_dtype.
template <class F>
void with_index_type(const Pool2dGeometry& g, F&& f) {
  pool2d_index_dtype(g) == DType::u8 ? f(Type<uint8_t>()) : f(Type<int32_t>());
}

unsigned blocks_for(const Work& work) {
  return static_cast<unsigned>(std::min(ceil_div(work.count(), kThreads), int64_t{1} << 24));
}

template <class T, int kWidth, bool kLong>
struct Average {};

// Calls f(Average, work). Long sums have one channel per thread: more would need many registers.
template <class F>
void for_average(const View& result, const View& operand, bool is_long, F&& f) {
  const auto call = [&]<class T, int kWidth>(Type<T>, std::integral_constant<int, kWidth>,
                                             Work work) {
    work.groups *= is_long ? kWidth : 1;
    is_long ? f(Average<T, 1, true>(), work) : f(Average<T, kWidth, false>(), work);
  };
  for_result("avg_pool2d", result, {&operand}, call);
}

void average_forward(const View& x, const View& y, const PoolWindows& height,
                     const PoolWindows& width) {
  const bool is_long = height.largest_window() * width.largest_window() > kPoolSumBlock;
  for_average(y, x, is_long,
              [&]<class T, int kWidth, bool kLong>(Average<T, kWidth, kLong>, const Work& work) {
                launch({"avg_pool2d_forward_thread_per_output_kernel", blocks_for(work), kThreads},
                       avg_pool2d_forward_thread_per_output_kernel<T, kWidth, kLong>,
                       Image<const T>(x), Image<T>(y), height, width, work);
              });
}

void average_backward(const View& dy, const View& dx, const PoolWindows& height,
                      const PoolWindows& width) {
  const bool is_long = height.largest_cover() * width.largest_cover() > kPoolSumBlock;
  for_average(dx, dy, is_long,
              [&]<class T, int kWidth, bool kLong>(Average<T, kWidth, kLong>, const Work& work) {
                launch({"avg_pool2d_backward_thread_per_input_kernel", blocks_for(work), kThreads},
                       avg_pool2d_backward_thread_per_input_kernel<T, kWidth, kLong>,
                       Image<const T>(dy), Image<T>(dx), height, width, work);
              });
}

}  // namespace

void cuda::max_pool2d_forward(const MaxPool2dForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const PoolWindows height = pool_windows(a.x, a.y, a.geometry, 0),
                    width = pool_windows(a.x, a.y, a.geometry, 1);
  with_index_type(a.geometry, [&]<class I>(Type<I>) {
    for_result(
        "max_pool2d", a.y, {&a.x, &a.index},
        [&]<class T, int kWidth>(Type<T>, std::integral_constant<int, kWidth>, const Work& work) {
          launch({"max_pool2d_forward_thread_per_output_kernel", blocks_for(work), kThreads},
                 max_pool2d_forward_thread_per_output_kernel<T, I, kWidth>, Image<const T>(a.x),
                 Image<T>(a.y), Image<I>(a.index), height, width, work);
        });
  });
}

void cuda::max_pool2d_backward(const MaxPool2dBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  const PoolWindows height = pool_windows(a.dx, a.dy, a.geometry, 0),
                    width = pool_windows(a.dx, a.dy, a.geometry, 1);
  with_index_type(a.geometry, [&]<class I>(Type<I>) {
    for_result(
        "max_pool2d", a.dx, {&a.dy, &a.index},
        [&]<class T, int kWidth>(Type<T>, std::integral_constant<int, kWidth>, const Work& work) {
          launch({"max_pool2d_backward_thread_per_input_kernel", blocks_for(work), kThreads},
                 max_pool2d_backward_thread_per_input_kernel<T, I, kWidth>, Image<const T>(a.dy),
                 Image<const I>(a.index), Image<T>(a.dx), height, width, work);
        });
  });
}

void cuda::avg_pool2d_forward(const AvgPool2dForward& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    average_forward(a.x, a.y, pool_windows(a.x, a.y, a.geometry, 0),
                    pool_windows(a.x, a.y, a.geometry, 1));
  }
}

void cuda::avg_pool2d_backward(const AvgPool2dBackward& a) {
  check_arguments(a);
  if (a.dx.numel > 0) {
    average_backward(a.dy, a.dx, pool_windows(a.dx, a.dy, a.geometry, 0),
                     pool_windows(a.dx, a.dy, a.geometry, 1));
  }
}

void cuda::adaptive_avg_pool2d_forward(const AdaptiveAvgPool2dForward& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    average_forward(a.x, a.y, adaptive_pool_windows(a.x, a.y, 0),
                    adaptive_pool_windows(a.x, a.y, 1));
  }
}

void cuda::adaptive_avg_pool2d_backward(const AdaptiveAvgPool2dBackward& a) {
  check_arguments(a);
  if (a.dx.numel > 0) {
    average_backward(a.dy, a.dx, adaptive_pool_windows(a.dx, a.dy, 0),
                     adaptive_pool_windows(a.dx, a.dy, 1));
  }
}

}  // namespace binade::kernels
