// Blocks of pixels are split into planes of floats, so that the arithmetic is vectorised although
// channels alternate in memory.
#include <binade/kernels/image/augment_bytes_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

#define BINADE_INLINE [[gnu::always_inline]] inline

constexpr int kBlock = 64;  // pixels

BINADE_INLINE float clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
BINADE_INLINE int clamp(int x, int low, int high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
BINADE_INLINE float grey_of(float red, float green, float blue) {
  return __builtin_floorf(red * 0.2989f + green * 0.587f + blue * 0.114f);
}

// The planes of up to kBlock pixels.
struct Planes {
  float red[kBlock], green[kBlock], blue[kBlock];

  BINADE_INLINE void load(const uint8_t* x, int count) {
    for (int i = 0; i < count; ++i) {
      red[i] = x[3 * i];
      green[i] = x[3 * i + 1];
      blue[i] = x[3 * i + 2];
    }
    for (int i = count; i < kBlock; ++i) {
      red[i] = green[i] = blue[i] = 0;
    }
  }
  BINADE_INLINE void store(uint8_t* y, int count) const {
    for (int i = 0; i < count; ++i) {
      y[3 * i] = static_cast<uint8_t>(static_cast<int>(red[i]));
      y[3 * i + 1] = static_cast<uint8_t>(static_cast<int>(green[i]));
      y[3 * i + 2] = static_cast<uint8_t>(static_cast<int>(blue[i]));
    }
  }
};

template <class Change>
BINADE_INLINE void for_blocks(const uint8_t* x, uint8_t* y, int64_t pixels, const Change& change) {
  Planes planes;
  for (int64_t at = 0; at < pixels; at += kBlock) {
    const int count = static_cast<int>(pixels - at < kBlock ? pixels - at : kBlock);
    planes.load(x + 3 * at, count);
    change(planes);
    planes.store(y + 3 * at, count);
  }
}

// The positions in x of a block of a row of y.
struct Positions {
  float column[kBlock], row[kBlock];

  BINADE_INLINE void compute(const WarpBytes& a, int i, int first) {
    const float* m = a.matrix;
    const float dy = static_cast<float>(i) - a.center_y;
    for (int k = 0; k < kBlock; ++k) {
      const float dx = static_cast<float>(first + k) - a.center_x;
      column[k] = dx * m[0] + dy * m[1] + m[2];
      row[k] = dx * m[3] + dy * m[4] + m[5];
    }
    if (a.projective) {
      for (int k = 0; k < kBlock; ++k) {
        const float dx = static_cast<float>(first + k) - a.center_x;
        const float w = dx * m[6] + dy * m[7] + m[8];
        column[k] = column[k] / w - 1;
        row[k] = row[k] / w - 1;
      }
    }
    // From -1 .. 1 to pixels. Positions far outside become -2 or size + 1, which are outside too;
    // so do NaN.
    const auto width = static_cast<float>(a.width), height = static_cast<float>(a.height);
    for (int k = 0; k < kBlock; ++k) {
      const float u = ((column[k] + 1) * width - 1) * 0.5f;
      const float v = ((row[k] + 1) * height - 1) * 0.5f;
      column[k] = u > -2 ? (u < width + 1 ? u : width + 1) : -2;
      row[k] = v > -2 ? (v < height + 1 ? v : height + 1) : -2;
    }
  }
};

template <int kChannels>
BINADE_INLINE void nearest_block(const WarpBytes& a, const Positions& at, int count, uint8_t* y) {
  int column[kBlock], row[kBlock];
  for (int k = 0; k < kBlock; ++k) {
    column[k] = static_cast<int>(__builtin_rintf(at.column[k]));
    row[k] = static_cast<int>(__builtin_rintf(at.row[k]));
  }
  for (int k = 0; k < count; ++k, y += kChannels) {
    const bool inside = column[k] >= 0 && column[k] < a.width && row[k] >= 0 && row[k] < a.height;
    const uint8_t* x =
        a.x + (static_cast<ptrdiff_t>(row[k]) * a.width + column[k]) * kChannels * inside;
    for (int c = 0; c < kChannels; ++c) {
      const auto outside = a.fill == nullptr
                               ? uint8_t{0}
                               : static_cast<uint8_t>(static_cast<int>(__builtin_rintf(a.fill[c])));
      y[c] = inside ? x[c] : outside;
    }
  }
}

// The four neighbours of a position: offsets in x, and weights, 0 outside.
template <int kChannels>
struct Neighbours {
  ptrdiff_t offset[4];
  float weight[4];

  BINADE_INLINE Neighbours(const WarpBytes& a, float column, float row) {
    const float left = __builtin_floorf(column), top = __builtin_floorf(row);
    const float across = column - left, down = row - top;
    const int x0 = static_cast<int>(left), y0 = static_cast<int>(top);
    for (int n = 0; n < 4; ++n) {
      const int x = x0 + (n & 1), y = y0 + (n >> 1);
      const bool inside = x >= 0 && x < a.width && y >= 0 && y < a.height;
      const float w = ((n & 1) != 0 ? across : 1 - across) * ((n >> 1) != 0 ? down : 1 - down);
      weight[n] = inside ? w : 0;
      offset[n] =
          (static_cast<ptrdiff_t>(clamp(y, 0, a.height - 1)) * a.width + clamp(x, 0, a.width - 1)) *
          kChannels;
    }
  }
};

template <int kChannels>
BINADE_INLINE void bilinear_block(const WarpBytes& a, const Positions& at, int count, uint8_t* y) {
  for (int k = 0; k < count; ++k, y += kChannels) {
    const Neighbours<kChannels> n(a, at.column[k], at.row[k]);
    const float cover = n.weight[0] + n.weight[1] + n.weight[2] + n.weight[3];
    for (int c = 0; c < kChannels; ++c) {
      const uint8_t* x = a.x + c;
      float value = static_cast<float>(x[n.offset[0]]) * n.weight[0] +
                    static_cast<float>(x[n.offset[1]]) * n.weight[1] +
                    static_cast<float>(x[n.offset[2]]) * n.weight[2] +
                    static_cast<float>(x[n.offset[3]]) * n.weight[3];
      if (a.fill != nullptr) {
        value = (value - a.fill[c]) * cover + a.fill[c];
      }
      y[c] = static_cast<uint8_t>(static_cast<int>(__builtin_rintf(clamp(value, 0.0f, 255.0f))));
    }
  }
}

template <int kChannels>
void warp(const WarpBytes& a) {
  Positions at;
  for (int i = 0; i < a.out_height; ++i) {
    uint8_t* row = a.y + static_cast<ptrdiff_t>(i) * a.out_width * kChannels;
    for (int j = 0; j < a.out_width; j += kBlock) {
      const int count = a.out_width - j < kBlock ? a.out_width - j : kBlock;
      at.compute(a, i, j);
      if (a.nearest) {
        nearest_block<kChannels>(a, at, count, row + static_cast<ptrdiff_t>(j) * kChannels);
      } else {
        bilinear_block<kChannels>(a, at, count, row + static_cast<ptrdiff_t>(j) * kChannels);
      }
    }
  }
}

// One colour from hue (times 6) and the values of the sector: red has offset 5, green 3, blue 1.
BINADE_INLINE float channel_of_hue(float hue6, float offset, float saturation, float value) {
  float k = hue6 + offset;
  k = k >= 6 ? k - 6 : k;
  const float rising = 4 - k;
  float part = k < rising ? k : rising;
  part = clamp(part, 0.0f, 1.0f);
  return value - value * saturation * part;
}

BINADE_INLINE void shift_hue(Planes& p, float shift) {
  for (int i = 0; i < kBlock; ++i) {
    const float r = p.red[i] * (1 / 255.0f), g = p.green[i] * (1 / 255.0f),
                b = p.blue[i] * (1 / 255.0f);
    const float most_rg = r > g ? r : g, least_rg = r > g ? g : r;
    const float most = most_rg > b ? most_rg : b, least = least_rg < b ? least_rg : b;
    const float range = most - least;
    const bool grey = most == least;
    const float saturation = range / (grey ? 1.0f : most), divisor = grey ? 1.0f : range;
    const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
    const float by_green = 2.0f + rc - bc, by_blue = 4.0f + gc - rc;
    float hue = most == g ? by_green : by_blue;
    hue = most == r ? bc - gc : hue;
    hue = hue * (1.0f / 6.0f) + 1.0f;
    hue = hue - __builtin_floorf(hue) + shift;
    hue = hue - __builtin_floorf(hue);
    float hue6 = hue * 6;
    hue6 = hue6 >= 6 ? hue6 - 6 : hue6;
    constexpr float kToBytes = 255.999f;
    p.red[i] = clamp(channel_of_hue(hue6, 5, saturation, most), 0.0f, 1.0f) * kToBytes;
    p.green[i] = clamp(channel_of_hue(hue6, 3, saturation, most), 0.0f, 1.0f) * kToBytes;
    p.blue[i] = clamp(channel_of_hue(hue6, 1, saturation, most), 0.0f, 1.0f) * kToBytes;
  }
}

template <class T>
BINADE_INLINE void weigh_block(const T* const* row, const WeighRows& a, int64_t at, float* sum) {
  for (int i = 0; i < kBlock; ++i) {
    sum[i] = 0;
  }
  for (int t = 0; t < a.taps; ++t) {
    const T* x = row[t] + at;
    const float weight = a.weight[t];
    for (int i = 0; i < kBlock; ++i) {
      sum[i] += static_cast<float>(x[i]) * weight;
    }
  }
}

template <class T>
BINADE_INLINE float weigh_one(const T* const* row, const WeighRows& a, int64_t at) {
  float sum = 0;
  for (int t = 0; t < a.taps; ++t) {
    sum += static_cast<float>(row[t][at]) * a.weight[t];
  }
  return sum;
}

template <class T>
BINADE_INLINE void weigh(const T* const* row, const WeighRows& a) {
  float sum[kBlock];
  int64_t at = 0;
  for (; at + kBlock <= a.count; at += kBlock) {
    weigh_block(row, a, at, sum);
    if (a.bytes_out != nullptr) {
      uint8_t* __restrict out = a.bytes_out + at;
      for (int i = 0; i < kBlock; ++i) {
        out[i] =
            static_cast<uint8_t>(static_cast<int>(__builtin_rintf(clamp(sum[i], 0.0f, 255.0f))));
      }
    } else {
      float* __restrict out = a.floats_out + at;
      for (int i = 0; i < kBlock; ++i) {
        out[i] = sum[i];
      }
    }
  }
  for (; at < a.count; ++at) {
    const float one = weigh_one(row, a, at);
    if (a.bytes_out != nullptr) {
      a.bytes_out[at] =
          static_cast<uint8_t>(static_cast<int>(__builtin_rintf(clamp(one, 0.0f, 255.0f))));
    } else {
      a.floats_out[at] = one;
    }
  }
}

}  // namespace

void warp_bytes(const WarpBytes& a) {
  switch (a.channels) {
    case 1: return warp<1>(a);
    case 2: return warp<2>(a);
    case 3: return warp<3>(a);
    default: return warp<4>(a);
  }
}

void blend_grey_bytes(const BlendGreyBytes& a) {
  const float factor = a.factor, rest = 1 - a.factor;
  for_blocks(a.x, a.y, a.pixels, [&](Planes& p) {
    for (int i = 0; i < kBlock; ++i) {
      const float grey = grey_of(p.red[i], p.green[i], p.blue[i]) * rest;
      p.red[i] = clamp(p.red[i] * factor + grey, 0.0f, 255.0f);
      p.green[i] = clamp(p.green[i] * factor + grey, 0.0f, 255.0f);
      p.blue[i] = clamp(p.blue[i] * factor + grey, 0.0f, 255.0f);
    }
  });
}

void grey_bytes(const GreyBytes& a) {
  for (int64_t i = 0; i < a.pixels; ++i) {
    const uint8_t* x = a.x + 3 * i;
    a.grey[i] = static_cast<uint8_t>(static_cast<int>(
        grey_of(static_cast<float>(x[0]), static_cast<float>(x[1]), static_cast<float>(x[2]))));
  }
}

void shift_hue_bytes(const ShiftHueBytes& a) {
  for_blocks(a.x, a.y, a.pixels, [&](Planes& p) { shift_hue(p, a.shift); });
}

// Bytes may alias anything: local restricted pointers let the loops be vectorised.
void sharpen_row(const SharpenRow& a) {
  const ptrdiff_t c = a.channels, bytes = a.bytes;
  const uint8_t* __restrict above = a.above, * __restrict x = a.x, * __restrict below = a.below;
  uint8_t* __restrict y = a.y;
  const float share = a.share;
  for (ptrdiff_t i = 0; i < bytes; ++i) {
    const int around = above[i - c] + above[i] + above[i + c] + x[i - c] + 5 * x[i] + x[i + c] +
                       below[i - c] + below[i] + below[i + c];
    const int average = (2 * around + 13) / 26;  // of 13 weights, never half way
    const auto own = static_cast<float>(x[i]);
    const float value = own + share * static_cast<float>(average - x[i]);
    y[i] = static_cast<uint8_t>(static_cast<int>(clamp(value, 0.0f, 255.0f)));
  }
}

void weigh_rows(const WeighRows& a) {
  a.bytes_in != nullptr ? weigh(a.bytes_in, a) : weigh(a.floats_in, a);
}

void add_bytes(const AddBytes& a) {
  for (int64_t i = 0; i < a.count; ++i) {
    a.y[i] += a.weight * static_cast<float>(a.x[i]);
  }
}

void look_up_bytes(const LookUpBytes& a) {
  const uint8_t* __restrict x = a.x, * __restrict table = a.table;
  uint8_t* __restrict y = a.y;
  const int64_t values = a.pixels * a.channels;
  if (a.one_table) {
    for (int64_t i = 0; i < values; ++i) {
      y[i] = table[x[i]];
    }
    return;
  }
  const int channels = a.channels;
  for (int64_t i = 0; i < values; i += channels) {
    for (int c = 0; c < channels; ++c) {
      y[i + c] = table[256 * c + x[i + c]];
    }
  }
}

}  // namespace binade::kernels::BINADE_ISA
