// CUDA image normalisation.
//
// image_normalize_packed_kernel: y is channels-last, so x and y are one flat range each. A thread
// takes the elements of 16 bytes of y, the wider side, since most of the traffic is writes.
// image_normalize_pixel_kernel: any other strides. A thread takes a pixel, so that reads are always
// coalesced, and the writes of a channel are if y is row-major.
// image_normalize_moved_kernel: images that are mirrored or mixed. A thread takes a pixel.
#include <binade/kernels/image/image_normalize_internal.h>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

struct Coefficients {
  float scale[kMaxImageChannels], shift[kMaxImageChannels];
};

template <class T>
__device__ __forceinline__ T normalized(uint8_t x, float scale, float shift) {
  using C = Compute<T>;
  return static_cast<T>(static_cast<C>(x) * static_cast<C>(scale) + static_cast<C>(shift));
}

template <class T, int kChannels>
__global__ void __launch_bounds__(kThreads)
    image_normalize_packed_kernel(const uint8_t* x, T* y, dev::VectorSpan span,
                                  const __grid_constant__ Coefficients k) {
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    // The coefficients, starting with the channel of the first element.
    const int first = static_cast<int>(at % kChannels);
    float scale[kChannels], shift[kChannels];
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        if ((first + i) % kChannels == c) {
          scale[i] = k.scale[c];
          shift[i] = k.shift[c];
        }
      }
    }
    uint8_t from[kWidth];
    T to[kWidth];
    dev::load_as(x + at, from);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      to[i] = normalized<T>(from[i], scale[i % kChannels], shift[i % kChannels]);
    }
    dev::store_from(y + at, to);
  });
}

template <class T, int kChannels>
__global__ void __launch_bounds__(kThreads)
    image_normalize_pixel_kernel(const uint8_t* x, const __grid_constant__ StridedIndex<1> pixels,
                                 int64_t channel_stride, const __grid_constant__ Coefficients k) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < pixels.numel;
       i += threads) {
    std::byte* at[1];
    pixels.locate(i, at);
    T* y = reinterpret_cast<T*>(at[0]);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      y[c * channel_stride] = normalized<T>(x[i * kChannels + c], k.scale[c], k.shift[c]);
    }
  }
}

// The images and their moves, for image_normalize_moved_kernel.
struct Moves {
  const uint8_t* flip;  // [images] or null
  int64_t images, height, width;
  ImageMix mix;
};

// A thread takes a pixel of y and reads its own and that of the image before.
template <class T, int kChannels>
__global__ void __launch_bounds__(kThreads)
    image_normalize_moved_kernel(const uint8_t* x, const __grid_constant__ StridedIndex<1> pixels,
                                 int64_t channel_stride, const __grid_constant__ Coefficients k,
                                 const __grid_constant__ Moves m) {
  using C = Compute<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < pixels.numel;
       i += threads) {
    const int64_t w = i % m.width, h = i / m.width % m.height, n = i / m.width / m.height;
    const int64_t before = n == 0 ? m.images - 1 : n - 1;
    const auto source = [&](int64_t image) {
      const bool mirrored = m.flip != nullptr && m.flip[image] != 0;
      return x + ((image * m.height + h) * m.width + (mirrored ? m.width - 1 - w : w)) * kChannels;
    };
    const uint8_t *p = source(n), *q = source(before);
    const C own = static_cast<C>(own_weight(m.mix, h, w));
    std::byte* at[1];
    pixels.locate(i, at);
    T* y = reinterpret_cast<T*>(at[0]);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      const C mixed = static_cast<C>(p[c]) * own + static_cast<C>(q[c]) * (C{1} - own);
      y[c * channel_stride] =
          static_cast<T>(mixed * static_cast<C>(k.scale[c]) + static_cast<C>(k.shift[c]));
    }
  }
}

template <class T, int kChannels>
void normalize(const ImageNormalize& a) {
  Coefficients k;
  for (size_t c = 0; c < kMaxImageChannels; ++c) {
    k.scale[c] = a.scale[c];
    k.shift[c] = a.shift[c];
  }
  const auto* x = a.x.as<const uint8_t>();
  if (keeps_order(a) && !moves_pixels(a)) {
    constexpr int kVector = dev::kVectorOf<T>;
    const auto span = dev::vector_span<kVector>(a.y.numel, x, a.y.as<const T>());
    return launch({"image_normalize_packed_kernel", grid_blocks(span, kVector, kThreads), kThreads},
                  image_normalize_packed_kernel<T, kChannels>, x, a.y.as<T>(), span, k);
  }
  View pixels = a.y;
  pixels.sizes = {a.y.size(0), a.y.size(2), a.y.size(3)};
  pixels.strides = {a.y.strides[0], a.y.strides[2], a.y.strides[3]};
  pixels.numel = a.y.numel / kChannels;
  if (moves_pixels(a)) {
    const Moves moves{a.flip.data == nullptr ? nullptr : a.flip.as<const uint8_t>(), a.x.size(0),
                      a.x.size(1), a.x.size(2), a.mix};
    return launch({"image_normalize_moved_kernel", grid_blocks(pixels.numel, kThreads), kThreads},
                  image_normalize_moved_kernel<T, kChannels>, x,
                  StridedIndex<1>::row_major({&pixels}), a.y.strides[1], k, moves);
  }
  launch({"image_normalize_pixel_kernel", grid_blocks(pixels.numel, kThreads), kThreads},
         image_normalize_pixel_kernel<T, kChannels>, x, StridedIndex<1>::row_major({&pixels}),
         a.y.strides[1], k);
}

}  // namespace

void cuda::image_normalize(const ImageNormalize& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating("image_normalize", a.y.dtype, [&]<class T>(Type<T>) {
    switch (a.x.size(3)) {
      case 1: return normalize<T, 1>(a);
      case 2: return normalize<T, 2>(a);
      case 3: return normalize<T, 3>(a);
      default: return normalize<T, 4>(a);
    }
  });
}

}  // namespace binade::kernels
