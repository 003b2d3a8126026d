// A user's launcher for a device: softmax with one thread per row, on the given stream. On the
// emulated device it starts its kernel as Binade's own kernels do.
#include <binade/kernels/base/user_kernel.h>

#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/launch.cuh>

BINADE_USER_KERNELS(BINADE_ON_EMULATED)

namespace {

__global__ void user_softmax_kernel(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= rows) {
    return;
  }
  float largest = x[row * cols], sum = 0;
  for (int64_t c = 1; c < cols; ++c) {
    largest = x[row * cols + c] > largest ? x[row * cols + c] : largest;
  }
  for (int64_t c = 0; c < cols; ++c) {
    sum += expf(x[row * cols + c] - largest);
  }
  for (int64_t c = 0; c < cols; ++c) {
    y[row * cols + c] = expf(x[row * cols + c] - largest) / sum;
  }
}

}  // namespace

int binade_softmax_forward(const binade_softmax_forward_call* a, const binade_launch* launch) {
  if (a->x.dtype != BINADE_F32 || a->log || !launch->threads) {
    return BINADE_DECLINED;
  }
  const int64_t rows = a->x.size[0];
  binade::kernels::launch(
      {.name = "user_softmax_kernel", .grid = dim3(unsigned((rows + 31) / 32)), .block = dim3(32)},
      user_softmax_kernel, static_cast<const float*>(a->x.data), static_cast<float*>(a->y.data),
      rows, a->x.size[1]);
  return BINADE_DONE;
}
