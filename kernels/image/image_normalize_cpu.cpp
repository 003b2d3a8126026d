// CPU image normalisation: loops over pixels in the order of x, on several threads.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/image/image_normalize_internal.h>

namespace binade::kernels::cpu {
namespace {

// Row `row` of [N * H], with pixels that are mirrored or mixed.
template <class T>
void moved_row(const ImageNormalize& a, int64_t row) {
  using C = Compute<T>;
  const int64_t images = a.x.size(0), height = a.x.size(1), width = a.x.size(2),
                channels = a.x.size(3);
  const int64_t n = row / height, h = row % height, before = n == 0 ? images - 1 : n - 1;
  const auto* x = a.x.as<const uint8_t>();
  const auto source = [&](int64_t image, int64_t w) {
    const bool mirrored = a.flip.data != nullptr && a.flip.as<const uint8_t>()[image] != 0;
    return x + ((image * height + h) * width + (mirrored ? width - 1 - w : w)) * channels;
  };
  T* y = a.y.as<T>() + n * a.y.strides[0] + h * a.y.strides[2];
  for (int64_t w = 0; w < width; ++w) {
    const auto own = static_cast<C>(own_weight(a.mix, h, w));
    const uint8_t *p = source(n, w), *q = source(before, w);
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<size_t>(c);
      const C mixed = static_cast<C>(p[c]) * own + static_cast<C>(q[c]) * (C{1} - own);
      y[w * a.y.strides[3] + c * a.y.strides[1]] =
          static_cast<T>(mixed * static_cast<C>(a.scale[at]) + static_cast<C>(a.shift[at]));
    }
  }
}

template <class T>
void normalize(const ImageNormalize& a) {
  using C = Compute<T>;
  const int64_t height = a.x.size(1), width = a.x.size(2), channels = a.x.size(3);
  const Dims& stride = a.y.strides;
  const int64_t per_row = width * channels;
  parallel_for(
      a.x.size(0) * height, kSerialElements / per_row + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          if (moves_pixels(a)) {
            moved_row<T>(a, row);
            continue;
          }
          const auto* x = a.x.as<const uint8_t>() + row * per_row;
          T* y = a.y.as<T>() + row / height * stride[0] + row % height * stride[2];
          for (int64_t w = 0; w < width; ++w) {
            for (int64_t c = 0; c < channels; ++c) {
              const auto at = static_cast<size_t>(c);
              y[w * stride[3] + c * stride[1]] =
                  static_cast<T>(static_cast<C>(x[w * channels + c]) * static_cast<C>(a.scale[at]) +
                                 static_cast<C>(a.shift[at]));
            }
          }
        }
      });
}

}  // namespace

void image_normalize(const ImageNormalize& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating("image_normalize", a.y.dtype, [&]<class T>(Type<T>) { normalize<T>(a); });
}

}  // namespace binade::kernels::cpu
