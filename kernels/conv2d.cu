// Convolution on a GPU: which implementation computes a call. The kernels are in conv2d_direct.cu
// and conv2d_implicit_gemm.cu.
#include <binade/kernels/cuda/conv2d_variants.h>
#include <binade/kernels/cuda/device.cuh>

namespace binade::kernels {

void cuda::conv2d_forward(const Conv2dForward& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.y.numel > 0) {
    conv2d_forward_direct(a, size);
  }
}

void cuda::conv2d_backward_data(const Conv2dBackwardData& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.dx.numel > 0) {
    conv2d_backward_data_direct(a, size);
  }
}

void cuda::conv2d_backward_weight(const Conv2dBackwardWeight& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.dw.numel > 0) {
    conv2d_backward_weight_direct(a, size);
  }
}

}  // namespace binade::kernels
