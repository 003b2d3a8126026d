// Convolution by its definition: a thread computes one output element and reads its operands
// straight from memory, in any layout. The threads of a warp have neighbouring channels: values
// that differ between threads are adjacent in memory, and values that are the same are one
// broadcast. Warps share data only through the caches. This is the reference for the tiles of
// implicit GEMM. It also runs where tiles are slower (one or two channels per group) and where
// 32-bit indices are too small for them.
//
// Backward to the weight has few outputs with long sums, so the pixels are split over threads; each
// writes its partial sum, and a second kernel adds them in order.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/conv/conv2d_kernels.cuh>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
// Backward to the weight splits the pixels so that about kSplitThreads threads run.
constexpr int64_t kSplitThreads = 256 * 1024;  // threads that fill a GPU
constexpr int64_t kMinSplitPixels = 64;        // shorter sums cost more to add than to compute

template <class T>
inline constexpr int kSumVector = dev::kVectorOf<Compute<T>>;

struct DirectConv2d {
  Conv2dSizes size;
  Conv2dGeometry geometry;
  int64_t x_strides[4] = {}, w_strides[4] = {}, y_strides[4] = {};  // of x or dx, w or dw, y or dy
};

DirectConv2d direct_conv2d(const Conv2dSizes& size, const Conv2dGeometry& geometry, const View& x,
                           const View& w, const View& y) {
  DirectConv2d conv{.size = size, .geometry = geometry};
  for (int i = 0; i < 4; ++i) {
    conv.x_strides[i] = x.strides[i];
    conv.w_strides[i] = w.strides[i];
    conv.y_strides[i] = y.strides[i];
  }
  return conv;
}

__device__ __forceinline__ int64_t element_at(const int64_t (&strides)[4], int64_t i, int64_t j,
                                              int64_t k, int64_t l) {
  return i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3];
}

// Splits a running index into coordinates from the innermost size outwards.
struct Coordinates {
  int64_t rest;
  __device__ __forceinline__ int64_t next(int64_t size) {
    const int64_t coordinate = rest % size;
    rest /= size;
    return coordinate;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    conv2d_forward_direct_kernel(const DirectConv2d conv, const T* x, const T* w,
                                 const DeviceEpilogue<T> epilogue, T* y) {
  const Conv2dSizes& d = conv.size;
  const Conv2dGeometry& g = conv.geometry;
  TileStore<T> store;
  store.rows = store.columns = 1;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i < d.n * d.p * d.q * d.o; i += step) {
    Coordinates at{i};
    const int64_t o = at.next(d.o), q = at.next(d.q), p = at.next(d.p), n = at.rest;
    const int64_t c0 = o / d.group_o * d.group_c;
    Compute<T> sum = 0;
    for (int64_t r = 0; r < d.r; ++r) {
      const int64_t h = p * g.stride[0] - g.padding[0] + r * g.dilation[0];
      for (int64_t s = 0; s < d.s && h >= 0 && h < d.h; ++s) {
        const int64_t column = q * g.stride[1] - g.padding[1] + s * g.dilation[1];
        for (int64_t c = 0; c < d.group_c && column >= 0 && column < d.w; ++c) {
          sum += static_cast<Compute<T>>(x[element_at(conv.x_strides, n, c0 + c, h, column)]) *
                 static_cast<Compute<T>>(w[element_at(conv.w_strides, o, c, r, s)]);
        }
      }
    }
    store.y = y + element_at(conv.y_strides, n, o, p, q);
    store.epilogue = epilogue.from(o);
    Compute<T> element[1] = {sum};
    store(0, 0, element);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    conv2d_backward_data_direct_kernel(const DirectConv2d conv, const T* dy, const T* w,
                                       const T* bias, int64_t bias_stride, T* dx) {
  const Conv2dSizes& d = conv.size;
  const Conv2dGeometry& g = conv.geometry;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i < d.n * d.h * d.w * d.c; i += step) {
    Coordinates at{i};
    const int64_t c = at.next(d.c), column = at.next(d.w), h = at.next(d.h), n = at.rest;
    const int64_t o0 = c / d.group_c * d.group_o;
    Compute<T> sum = bias ? static_cast<Compute<T>>(bias[c * bias_stride]) : Compute<T>(0);
    for (int64_t r = 0; r < d.r; ++r) {  // pixel h is tap r of output row p, if of any
      const int64_t top = h + g.padding[0] - r * g.dilation[0], p = top / g.stride[0];
      if (top < 0 || top % g.stride[0] != 0 || p >= d.p) {
        continue;
      }
      for (int64_t s = 0; s < d.s; ++s) {
        const int64_t left = column + g.padding[1] - s * g.dilation[1], q = left / g.stride[1];
        if (left < 0 || left % g.stride[1] != 0 || q >= d.q) {
          continue;
        }
        for (int64_t o = o0; o < o0 + d.group_o; ++o) {
          sum += static_cast<Compute<T>>(dy[element_at(conv.y_strides, n, o, p, q)]) *
                 static_cast<Compute<T>>(w[element_at(conv.w_strides, o, c % d.group_c, r, s)]);
        }
      }
    }
    dx[element_at(conv.x_strides, n, c, h, column)] = static_cast<T>(sum);
  }
}

// blockIdx.y is the split: pixels [split * split_pixels, ...) of all images.
template <class T>
__global__ void __launch_bounds__(kThreads)
    conv2d_backward_weight_direct_kernel(const DirectConv2d conv, const T* x, const T* dy,
                                         int64_t split_pixels, Compute<T>* partials) {
  const Conv2dSizes& d = conv.size;
  const Conv2dGeometry& g = conv.geometry;
  const int64_t elements = d.o * d.r * d.s * d.group_c, pixels = d.n * d.p * d.q;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t first = blockIdx.y * split_pixels;
  const int64_t last = first + split_pixels < pixels ? first + split_pixels : pixels;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i < elements; i += step) {
    Coordinates at{i};
    const int64_t c = at.next(d.group_c), s = at.next(d.s), r = at.next(d.r), o = at.rest;
    const int64_t channel = o / d.group_o * d.group_c + c;
    Coordinates pixel{first};
    int64_t q = pixel.next(d.q), p = pixel.next(d.p), n = pixel.rest;
    Compute<T> sum = 0;
    for (int64_t left = last - first; left > 0; --left) {
      const int64_t h = p * g.stride[0] - g.padding[0] + r * g.dilation[0];
      const int64_t column = q * g.stride[1] - g.padding[1] + s * g.dilation[1];
      if (h >= 0 && h < d.h && column >= 0 && column < d.w) {
        sum += static_cast<Compute<T>>(x[element_at(conv.x_strides, n, channel, h, column)]) *
               static_cast<Compute<T>>(dy[element_at(conv.y_strides, n, o, p, q)]);
      }
      if (++q == d.q) {
        q = 0;
        if (++p == d.p) {
          p = 0;
          ++n;
        }
      }
    }
    partials[blockIdx.y * elements + i] = sum;
  }
}

// A thread adds the splits of one vector of elements. dw is as dense as the partials.
template <class T>
__global__ void __launch_bounds__(kThreads)
    conv2d_sum_weight_partials_kernel(const Compute<T>* partials, int64_t splits, T* dw,
                                      dev::VectorSpan span) {
  dev::for_each_vector<kSumVector<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    Compute<T> sums[kWidth] = {};
    for (int64_t split = 0; split < splits; ++split) {
      Compute<T> more[kWidth];
      dev::load_as(partials + split * span.n + at, more);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        sums[i] += more[i];
      }
    }
    dev::store_from(dw + at, sums);
  });
}

}  // namespace

void conv2d_forward_direct(const Conv2dForward& a, const Conv2dSizes& size) {
  const DirectConv2d conv = direct_conv2d(size, a.geometry, a.x, a.w, a.y);
  dispatch_floating("conv2d_forward", a.y.dtype, [&]<class T>(Type<T>) {
    launch({"conv2d_forward_direct_kernel", grid_blocks(a.y.numel, kThreads), kThreads},
           conv2d_forward_direct_kernel<T>, conv, a.x.as<T>(), a.w.as<T>(),
           DeviceEpilogue<T>(a.epilogue), a.y.as<T>());
  });
}

void conv2d_backward_data_direct(const Conv2dBackwardData& a, const Conv2dSizes& size) {
  const DirectConv2d conv = direct_conv2d(size, a.geometry, a.dx, a.w, a.dy);
  dispatch_floating("conv2d_backward_data", a.dx.dtype, [&]<class T>(Type<T>) {
    launch({"conv2d_backward_data_direct_kernel", grid_blocks(a.dx.numel, kThreads), kThreads},
           conv2d_backward_data_direct_kernel<T>, conv, a.dy.as<T>(), a.w.as<T>(), a.bias.as<T>(),
           a.bias ? a.bias.strides[0] : 0, a.dx.as<T>());
  });
}

void conv2d_backward_weight_direct(const Conv2dBackwardWeight& a, const Conv2dSizes& size) {
  const DirectConv2d conv = direct_conv2d(size, a.geometry, a.x, a.dw, a.dy);
  const int64_t pixels = size.n * size.p * size.q;
  const int64_t wanted = std::clamp<int64_t>(kSplitThreads / a.dw.numel, 1, 65535);
  const int64_t split_pixels = std::max(ceil_div(pixels, wanted), kMinSplitPixels);
  const int64_t splits = ceil_div(pixels, split_pixels);
  const Workspace partials(
      static_cast<size_t>(splits * a.dw.numel) * size_of(compute_dtype(a.dw.dtype)), a.dw.device);
  dispatch_floating("conv2d_backward_weight", a.dw.dtype, [&]<class T>(Type<T>) {
    if (splits > 0) {
      const dim3 grid(grid_blocks(a.dw.numel, kThreads), static_cast<unsigned>(splits));
      launch({"conv2d_backward_weight_direct_kernel", grid, kThreads},
             conv2d_backward_weight_direct_kernel<T>, conv, a.x.as<T>(), a.dy.as<T>(), split_pixels,
             partials.as<Compute<T>>());
    }
  });
  conv2d_sum_weight_partials(partials.as<void>(), splits, a.dw);
}

void conv2d_sum_weight_partials(const void* partials, int64_t splits, const View& dw) {
  const DenseOutput out(dw, Order::channels_last);
  dispatch_floating("conv2d_backward_weight", dw.dtype, [&]<class T>(Type<T>) {
    constexpr int kVector = kSumVector<T>;
    const auto* sums = static_cast<const Compute<T>*>(partials);
    const bool aligned = dw.numel % kVector == 0;  // every split begins on a vector
    const dev::VectorSpan span = aligned ? dev::vector_span<kVector>(dw.numel, sums, out.as<T>())
                                         : dev::VectorSpan{dw.numel, dw.numel, 0};
    launch({"conv2d_sum_weight_partials_kernel", grid_blocks(span, kVector, kThreads), kThreads},
           conv2d_sum_weight_partials_kernel<T>, sums, splits, out.as<T>(), span);
  });
  out.store();
}

}  // namespace binade::kernels
