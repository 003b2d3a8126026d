// Matrices of affine changes, as torchvision computes them. Internal to data.
#pragma once
#include <binade/data/augment/image_ops.h>

namespace binade::data::internal {

// Two rows of three: (x, y) becomes (m0 x + m1 y + m2, m3 x + m4 y + m5).
using AffineMatrix = std::array<double, 6>;

// The matrix that maps positions in the result to positions in the picture, around `center`.
AffineMatrix inverse_of(const Affine& affine, std::array<double, 2> center);
AffineMatrix forward_of(const Affine& affine, std::array<double, 2> center);
Affine affine_of(const Rotation& rotation);
// The center, measured from the middle of the picture.
std::array<double, 2> from_middle(const std::optional<std::array<double, 2>>& center, int height,
                                  int width);
// The {height, width} of rotate_image's result for a picture of that size.
std::array<int, 2> rotated_size(const Rotation& rotation, int height, int width);

}  // namespace binade::data::internal
