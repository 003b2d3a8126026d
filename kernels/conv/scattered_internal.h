// Backward to the data (the forward pass of a transposed convolution) as one matrix product and a
// sum: columns [n p q, r s c] = dy [n p q, o] w [o, r s c], and dx adds each column at the pixel
// that its tap reaches ("col2im"). The correlation of conv2d_cpu.cpp multiplies every tap of every
// pixel of dx, also those that lie outside dy, by vectors of output channels; this product has only
// the pixels of dy, and its vectors are full even if there are 3 channels. Internal to kernels/.
#pragma once
#include <binade/kernels/conv/conv2d_internal.h>

namespace binade::kernels {

// The rule: it runs if it costs less than two thirds of the correlation, both counted in
// multiplications of whole vectors, where adding a column counts as kColumnCost of them. It depends
// on shape and instruction set only, and holds for one group.
bool scattered_pays(DType dtype, const Conv2dSizes& size, const Conv2dGeometry& geometry);

// REQUIRES: one group, and neither dy nor dx is empty.
void scattered_backward_data(const Conv2dBackwardData& a, const Conv2dSizes& size);

}  // namespace binade::kernels
