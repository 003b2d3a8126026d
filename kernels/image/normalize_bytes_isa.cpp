#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/image/normalize_bytes_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

typedef uint8_t Bytes __attribute__((vector_size(kLanes<float>)));

BINADE_INLINE Vector<float> load_bytes(const uint8_t* x) {
  Bytes bytes;
  __builtin_memcpy(&bytes, x, sizeof bytes);
  return __builtin_convertvector(bytes, Vector<float>);
}

// In the order of x. A period is kNormalizePixels pixels.
template <class T>
void interleaved(const NormalizeBytes& a) {
  T* y = reinterpret_cast<T*>(a.y);
  const int64_t count = a.pixels * a.channels, period = int64_t{kNormalizePixels} * a.channels;
  int64_t i = 0;
  for (; i + period <= count; i += period) {
    for (int64_t j = 0; j < period; j += kLanes<float>) {
      store(y + i + j, load_bytes(a.x + i + j) * load(a.scale + j) + load(a.shift + j));
    }
  }
  for (int64_t j = 0; i < count; ++i, ++j) {
    y[i] = static_cast<T>(static_cast<float>(a.x[i]) * a.scale[j] + a.shift[j]);
  }
}

// The bytes of one channel of kNormalizePixels pixels, by a shuffle of each 16 bytes of them.
struct Channel {
  __m128i mask[4];

  Channel(int channel, int channels) {
    constexpr uint8_t kZero = 0x80;
    for (int part = 0; part < channels; ++part) {
      alignas(16) uint8_t bytes[16];
      for (int i = 0; i < kNormalizePixels; ++i) {
        const int at = i * channels + channel - 16 * part;
        bytes[i] = at >= 0 && at < 16 ? static_cast<uint8_t>(at) : kZero;
      }
      mask[part] = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
    }
  }
  BINADE_INLINE void take(const uint8_t* x, int channels, uint8_t* out) const {
    __m128i all = _mm_setzero_si128();
    for (int part = 0; part < channels; ++part) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * part));
      all = _mm_or_si128(all, _mm_shuffle_epi8(bytes, mask[part]));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
  }
};

template <class T>
void planes(const NormalizeBytes& a) {
  for (int c = 0; c < a.channels; ++c) {
    const Channel channel(c, a.channels);
    T* y = reinterpret_cast<T*>(a.y) + c * a.plane;
    const Vector<float> scale = broadcast(a.scale[c]), shift = broadcast(a.shift[c]);
    int64_t i = 0;
    for (; i + kNormalizePixels <= a.pixels; i += kNormalizePixels) {
      uint8_t bytes[kNormalizePixels];
      channel.take(a.x + i * a.channels, a.channels, bytes);
      for (int j = 0; j < kNormalizePixels; j += kLanes<float>) {
        store(y + i + j, load_bytes(bytes + j) * scale + shift);
      }
    }
    for (; i < a.pixels; ++i) {
      y[i] = static_cast<T>(static_cast<float>(a.x[i * a.channels + c]) * a.scale[c] + a.shift[c]);
    }
  }
}

template <class T>
void normalize(const NormalizeBytes& a) {
  a.plane == 0 ? interleaved<T>(a) : planes<T>(a);
}

}  // namespace

void normalize_bytes(const NormalizeBytes& a) {
  switch (a.dtype) {
    case DType::f16: return normalize<half>(a);
    case DType::bf16: return normalize<bfloat16>(a);
    default: return normalize<float>(a);
  }
}

}  // namespace binade::kernels::BINADE_ISA
