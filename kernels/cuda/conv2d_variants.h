// The implementations of conv2d on a GPU, for kernels/conv2d.cu to choose from:
//   direct         one thread per output element, any layout and size; the readable reference
//   implicit_gemm  tiles of a matrix product whose rows are gathered from the images
// The caller has checked the arguments. Outputs are not empty; what is summed over may be.
#pragma once
#include <binade/kernels/conv2d_checks.h>

namespace binade::kernels {

void conv2d_forward_direct(const Conv2dForward& a, const Conv2dSizes& size);
void conv2d_backward_data_direct(const Conv2dBackwardData& a, const Conv2dSizes& size);
void conv2d_backward_weight_direct(const Conv2dBackwardWeight& a, const Conv2dSizes& size);

// True if the index arithmetic of the tiles (32 bits inside an image) holds for this call.
bool fits_implicit_gemm(const Conv2dSizes& size, const Conv2dGeometry& geometry);
void conv2d_forward_implicit_gemm(const Conv2dForward& a, const Conv2dSizes& size);
void conv2d_backward_data_implicit_gemm(const Conv2dBackwardData& a, const Conv2dSizes& size);
void conv2d_backward_weight_implicit_gemm(const Conv2dBackwardWeight& a, const Conv2dSizes& size);

// dw = the sum over the splits, in their order, of partials [splits, O, R, S, C / groups] in the
// compute dtype. No splits: dw is zero.
void conv2d_sum_weight_partials(const void* partials, int64_t splits, const View& dw);

}  // namespace binade::kernels
