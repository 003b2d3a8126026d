// A user's softmax, forward and backward, on the CPU: one pass finds the maximum and the sum
// together (Milakov and Gimelshein, 2018), a second one writes.
#include <binade/kernels/base/user_kernel.h>

#include <cmath>

BINADE_USER_KERNELS(BINADE_ON_CPU)

namespace {

void forward_row(const float* x, float* y, int64_t cols, bool log) {
  float largest = -INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const float before = largest;
    largest = x[c] > largest || std::isnan(x[c]) ? x[c] : largest;
    sum = sum * (before == largest ? 1 : std::exp(before - largest)) + std::exp(x[c] - largest);
  }
  const float shift = largest + std::log(sum);
  for (int64_t c = 0; c < cols; ++c) {
    y[c] = log ? x[c] - shift : std::exp(x[c] - largest) / sum;
  }
}

void backward_row(const float* y, const float* dy, float* dx, int64_t cols, bool log) {
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    sum += log ? dy[c] : dy[c] * y[c];
  }
  for (int64_t c = 0; c < cols; ++c) {
    dx[c] = log ? dy[c] - std::exp(y[c]) * sum : y[c] * (dy[c] - sum);
  }
}

}  // namespace

int binade_softmax_forward(const struct binade_softmax_forward_call* a,
                           const struct binade_launch*) {
  if (a->x.dtype != BINADE_F32) {
    return BINADE_DECLINED;
  }
  const int64_t rows = a->x.size[0], cols = a->x.size[1];
  for (int64_t r = 0; r < rows; ++r) {
    forward_row(static_cast<const float*>(a->x.data) + r * cols,
                static_cast<float*>(a->y.data) + r * cols, cols, a->log != 0);
  }
  return BINADE_DONE;
}

int binade_softmax_backward(const struct binade_softmax_backward_call* a,
                            const struct binade_launch*) {
  if (a->y.dtype != BINADE_F32) {
    return BINADE_DECLINED;
  }
  const int64_t rows = a->y.size[0], cols = a->y.size[1];
  for (int64_t r = 0; r < rows; ++r) {
    backward_row(static_cast<const float*>(a->y.data) + r * cols,
                 static_cast<const float*>(a->dy.data) + r * cols,
                 static_cast<float*>(a->dx.data) + r * cols, cols, a->log != 0);
  }
  return BINADE_DONE;
}
