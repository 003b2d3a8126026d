// Functions that the changes of pictures share. Internal to data.
#pragma once
#include <binade/data/augment/image_ops.h>
#include <binade/kernels/base/error.h>

namespace binade::data::internal {

Image same_shape(const Image& image);  // black
int64_t pixel_count(const Image& image);
// One value per channel; throws Error if the number of values is not 1 or `channels`, or if one is
// not from 0 to 255.
std::vector<float> fill_for(const char* op, const Fill& fill, int channels);

}  // namespace binade::data::internal
