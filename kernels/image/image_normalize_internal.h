// Helpers of image_normalize that every backend uses.
#pragma once
#include <binade/kernels/image/image_normalize.h>

namespace binade::kernels {

// True if y's elements lie in memory in the order of x's: channels-last without gaps.
bool keeps_order(const ImageNormalize& a);

}  // namespace binade::kernels
