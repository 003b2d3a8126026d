// Every function of user_kernel.h for f32, as plain as possible, to test how Binade calls them. It
// is built several times: correct, and with one mistake each (the definitions USER_...).
#include <binade/kernels/base/user_kernel.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#ifndef USER_DEVICES
#define USER_DEVICES (BINADE_ON_CPU | BINADE_ON_EMULATED)
#endif
#ifdef USER_ABI
extern "C" __attribute__((visibility("default")))
const struct binade_user_kernels binade_user_kernels = {USER_ABI, USER_DEVICES};
#elif !defined(USER_NO_VERSION)
BINADE_USER_KERNELS(USER_DEVICES)
#endif

namespace {

// Added to the last element of a result; 0 unless the build plants a mistake.
#ifdef USER_MISTAKE
constexpr float kMistake = USER_MISTAKE;
#else
constexpr float kMistake = 0;
#endif

float& at(const binade_tensor& t, int64_t i, int64_t j = 0, int64_t k = 0, int64_t l = 0) {
  return static_cast<float*>(
      t.data)[i * t.stride[0] + j * t.stride[1] + k * t.stride[2] + l * t.stride[3]];
}
float value_or(const binade_tensor& t, int64_t i, float otherwise) {
  return t.data ? at(t, i) : otherwise;
}
int status_of(const binade_tensor& t) {
#if defined(USER_THROWS)
  return t.data ? throw USER_THROWS : 0;
#elif defined(USER_STATUS)
  return t.data ? USER_STATUS : USER_STATUS;
#else
  return t.dtype == BINADE_F32 ? BINADE_DONE : BINADE_DECLINED;
#endif
}

}  // namespace

#define USER_CHECK(t)                                 \
  if (const int status = status_of(t); status != 0) { \
    return status;                                    \
  }

int binade_softmax_forward(const binade_softmax_forward_call* a, const binade_launch*) {
  USER_CHECK(a->x)
  const int64_t cols = a->x.size[1];
  for (int64_t r = 0; r < a->x.size[0]; ++r) {
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      largest = std::fmax(largest, at(a->x, r, c));
    }
    for (int64_t c = 0; c < cols; ++c) {
      sum += std::exp(at(a->x, r, c) - largest);
    }
    for (int64_t c = 0; c < cols; ++c) {
      const double d = at(a->x, r, c) - largest;
      at(a->y, r, c) = static_cast<float>(a->log ? d - std::log(sum) : std::exp(d) / sum);
    }
    at(a->y, r, cols - 1) += r + 1 == a->x.size[0] ? kMistake : 0;
  }
  return BINADE_DONE;
}

#ifndef USER_FORWARD_ONLY
int binade_softmax_backward(const binade_softmax_backward_call* a, const binade_launch*) {
  USER_CHECK(a->y)
  for (int64_t r = 0; r < a->y.size[0]; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < a->y.size[1]; ++c) {
      sum += double{at(a->dy, r, c)} * (a->log ? 1 : at(a->y, r, c));
    }
    for (int64_t c = 0; c < a->y.size[1]; ++c) {
      const double y = at(a->y, r, c), dy = at(a->dy, r, c);
      at(a->dx, r, c) = static_cast<float>(a->log ? dy - std::exp(y) * sum : y * (dy - sum));
    }
  }
  return BINADE_DONE;
}
#endif

int binade_reduce_forward(const binade_reduce_forward_call* a, const binade_launch*) {
  USER_CHECK(a->x)
  if (a->reduction != BINADE_SUM && a->reduction != BINADE_MEAN) {
    return BINADE_DECLINED;
  }
  for (int64_t o = 0; o < a->x.size[0]; ++o) {
    for (int64_t i = 0; i < a->x.size[2]; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < a->x.size[1]; ++k) {
        sum += at(a->x, o, k, i);
      }
      at(a->y, o, i) =
          static_cast<float>(a->reduction == BINADE_SUM ? sum : sum / double(a->x.size[1]));
    }
  }
  return BINADE_DONE;
}

namespace {

// Normalises rows: layer norm and RMS norm.
int rows_forward(const binade_layer_norm_forward_call* a) {
  USER_CHECK(a->x)
  const int64_t cols = a->x.size[1];
  for (int64_t r = 0; r < a->x.size[0]; ++r) {
    double mean = 0, squares = 0;
    for (int64_t c = 0; a->mean.data && c < cols; ++c) {
      mean += at(a->x, r, c) / double(cols);
    }
    for (int64_t c = 0; c < cols; ++c) {
      squares += (at(a->x, r, c) - mean) * (at(a->x, r, c) - mean) / double(cols);
    }
    const double rstd = 1 / std::sqrt(squares + a->eps);
    for (int64_t c = 0; c < cols; ++c) {
      at(a->y, r, c) = static_cast<float>(
          (at(a->x, r, c) - mean) * rstd * value_or(a->weight, c, 1) + value_or(a->bias, c, 0));
    }
    if (a->mean.data) {
      at(a->mean, r) = static_cast<float>(mean);
    }
    at(a->rstd, r) = static_cast<float>(rstd);
  }
  return BINADE_DONE;
}

int rows_backward(const binade_layer_norm_backward_call* a) {
  USER_CHECK(a->x)
  const int64_t rows = a->x.size[0], cols = a->x.size[1];
  std::vector<double> dweight(size_t(cols), 0.0), dbias(size_t(cols), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const double mean = value_or(a->mean, r, 0), rstd = at(a->rstd, r);
    double g_mean = 0, gu_mean = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const double u = (at(a->x, r, c) - mean) * rstd, dy = at(a->dy, r, c);
      g_mean += a->mean.data ? dy * value_or(a->weight, c, 1) / double(cols) : 0;
      gu_mean += dy * value_or(a->weight, c, 1) * u / double(cols);
      dweight[size_t(c)] += dy * u;
      dbias[size_t(c)] += dy;
    }
    for (int64_t c = 0; a->dx.data && c < cols; ++c) {
      const double u = (at(a->x, r, c) - mean) * rstd;
      const double g = double{at(a->dy, r, c)} * value_or(a->weight, c, 1);
      at(a->dx, r, c) = static_cast<float>(rstd * (g - g_mean - u * gu_mean));
    }
  }
  for (int64_t c = 0; c < cols; ++c) {
    if (a->dweight.data) {
      at(a->dweight, c) = static_cast<float>(dweight[size_t(c)]);
    }
    if (a->dbias.data) {
      at(a->dbias, c) = static_cast<float>(dbias[size_t(c)]);
    }
  }
  return BINADE_DONE;
}

// Batch norm (groups 0) and group norm: handles the channels that share a mean.
int channels_forward(const binade_channel_norm_forward_call* a, bool batch) {
  USER_CHECK(a->x)
  const int64_t n = a->x.size[0], channels = a->x.size[1], pixels = a->x.size[2];
  const int64_t groups = batch ? channels : a->mean.size[1], width = channels / groups;
  for (int64_t part = 0; part < (batch ? 1 : n); ++part) {
    const int64_t first = batch ? 0 : part, last = batch ? n : part + 1;
    for (int64_t g = 0; g < groups; ++g) {
      const double count = double((last - first) * width * pixels);
      double mean = 0, variance = 0;
      const auto each = [&](auto f) {
        for (int64_t i = first; i < last; ++i) {
          for (int64_t c = g * width; c < (g + 1) * width; ++c) {
            for (int64_t p = 0; p < pixels; ++p) {
              f(i, c, p);
            }
          }
        }
      };
      each([&](int64_t i, int64_t c, int64_t p) { mean += at(a->x, i, c, p) / count; });
      each([&](int64_t i, int64_t c, int64_t p) {
        variance += (at(a->x, i, c, p) - mean) * (at(a->x, i, c, p) - mean) / count;
      });
      const double rstd = 1 / std::sqrt(variance + a->eps);
      each([&](int64_t i, int64_t c, int64_t p) {
        at(a->y, i, c, p) =
            static_cast<float>((at(a->x, i, c, p) - mean) * rstd * value_or(a->weight, c, 1) +
                               value_or(a->bias, c, 0));
      });
      const int64_t index = batch ? g : part * groups + g;
      static_cast<float*>(a->mean.data)[index] = static_cast<float>(mean);
      static_cast<float*>(a->rstd.data)[index] = static_cast<float>(rstd);
      if (a->variance.data) {
        at(a->variance, g) = static_cast<float>(variance);
      }
      if (a->mean_rest.data) {
        at(a->mean_rest, g) = static_cast<float>(mean - double(static_cast<float>(mean)));
      }
    }
  }
  return BINADE_DONE;
}

}  // namespace

int binade_layer_norm_forward(const binade_layer_norm_forward_call* a, const binade_launch*) {
  return rows_forward(a);
}
int binade_layer_norm_backward(const binade_layer_norm_backward_call* a, const binade_launch*) {
  return rows_backward(a);
}
int binade_rms_norm_forward(const binade_layer_norm_forward_call* a, const binade_launch*) {
  return rows_forward(a);
}
int binade_rms_norm_backward(const binade_layer_norm_backward_call* a, const binade_launch*) {
  return rows_backward(a);
}
int binade_batch_norm_forward(const binade_channel_norm_forward_call* a, const binade_launch*) {
  return channels_forward(a, true);
}
int binade_group_norm_forward(const binade_channel_norm_forward_call* a, const binade_launch*) {
  return channels_forward(a, false);
}

int binade_attention_forward(const binade_attention_forward_call* a, const binade_launch*) {
  USER_CHECK(a->q)
  const int64_t keys = a->k.size[2], size = a->q.size[3], value_size = a->v.size[3];
  for (int64_t b = 0; b < a->q.size[0]; ++b) {
    for (int64_t h = 0; h < a->q.size[1]; ++h) {
      for (int64_t i = 0; i < a->q.size[2]; ++i) {
        const int64_t seen = a->causal && i + 1 < keys ? i + 1 : keys;
        std::vector<double> scores(static_cast<size_t>(seen), 0.0);
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < seen; ++j) {
          for (int64_t s = 0; s < size; ++s) {
            scores[size_t(j)] += a->scale * at(a->q, b, h, i, s) * at(a->k, b, h, j, s);
          }
          largest = std::fmax(largest, scores[size_t(j)]);
        }
        for (const double score : scores) {
          sum += std::exp(score - largest);
        }
        for (int64_t s = 0; s < value_size; ++s) {
          double value = 0;
          for (int64_t j = 0; j < seen; ++j) {
            value += std::exp(scores[size_t(j)] - largest) / sum * at(a->v, b, h, j, s);
          }
          at(a->out, b, h, i, s) = static_cast<float>(value);
        }
        at(a->lse, b, h, i) = static_cast<float>(largest + std::log(sum));
      }
    }
  }
  return BINADE_DONE;
}

int binade_gemm(const binade_gemm_call* a, const binade_launch*) {
  USER_CHECK(a->a)
  for (int64_t b = 0; b < a->y.size[0]; ++b) {
    for (int64_t i = 0; i < a->y.size[1]; ++i) {
      for (int64_t j = 0; j < a->y.size[2]; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < a->a.size[2]; ++k) {
          sum += double{at(a->a, b, i, k)} * at(a->b, b, k, j);
        }
        at(a->y, b, i, j) = static_cast<float>(sum);
      }
    }
  }
  return BINADE_DONE;
}

namespace {

// Calls f(x index.., w index.., y index..) for every product of a convolution.
template <class F>
void each_product(const binade_conv2d_call* a, F f) {
  const int64_t per_group = a->w.size[1], outputs = a->w.size[0] / a->groups;
  for (int64_t n = 0; n < a->y.size[0]; ++n) {
    for (int64_t o = 0; o < a->y.size[1]; ++o) {
      for (int64_t p = 0; p < a->y.size[2] * a->y.size[3]; ++p) {
        const int64_t row = p / a->y.size[3], column = p % a->y.size[3];
        for (int64_t t = 0; t < per_group * a->w.size[2] * a->w.size[3]; ++t) {
          const int64_t c = t / (a->w.size[2] * a->w.size[3]);
          const int64_t r = t / a->w.size[3] % a->w.size[2], s = t % a->w.size[3];
          const int64_t h = row * a->stride[0] - a->padding[0] + r * a->dilation[0];
          const int64_t w = column * a->stride[1] - a->padding[1] + s * a->dilation[1];
          if (h >= 0 && h < a->x.size[2] && w >= 0 && w < a->x.size[3]) {
            f(at(a->x, n, o / outputs * per_group + c, h, w), at(a->w, o, c, r, s),
              at(a->y, n, o, row, column));
          }
        }
      }
    }
  }
}

void clear(const binade_tensor& t) {
  for (int64_t i = 0; i < t.size[0]; ++i) {
    for (int64_t j = 0; j < t.size[1]; ++j) {
      for (int64_t k = 0; k < t.size[2]; ++k) {
        for (int64_t l = 0; l < t.size[3]; ++l) {
          at(t, i, j, k, l) = 0;
        }
      }
    }
  }
}

}  // namespace

int binade_conv2d_forward(const binade_conv2d_call* a, const binade_launch*) {
  USER_CHECK(a->x)
  clear(a->y);
  each_product(a, [](float x, float w, float& y) { y += x * w; });
  return BINADE_DONE;
}
int binade_conv2d_backward_data(const binade_conv2d_call* a, const binade_launch*) {
  USER_CHECK(a->x)
  clear(a->x);
  each_product(a, [](float& dx, float w, float dy) { dx += w * dy; });
  return BINADE_DONE;
}
int binade_conv2d_backward_weight(const binade_conv2d_call* a, const binade_launch*) {
  USER_CHECK(a->x)
  clear(a->w);
  each_product(a, [](float x, float& dw, float dy) { dw += x * dy; });
  return BINADE_DONE;
}
