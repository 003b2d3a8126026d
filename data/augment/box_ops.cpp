// Boxes follow the changes of their picture: the four corners move, and the new box encloses them.
#include <binade/data/augment/image_ops_internal.h>
#include <binade/data/augment/matrix_internal.h>

#include <algorithm>
#include <limits>

namespace binade::data {
namespace {

using Box = std::array<float, 4>;

void clamp_to_canvas(Boxes& boxes) {
  const auto width = static_cast<float>(boxes.width), height = static_cast<float>(boxes.height);
  for (Box& box : boxes.corners) {
    box = {std::clamp(box[0], 0.0f, width), std::clamp(box[1], 0.0f, height),
           std::clamp(box[2], 0.0f, width), std::clamp(box[3], 0.0f, height)};
  }
}

// The box around the four corners that move(x, y) gives.
template <class Move>
Box around(const Box& box, const Move& move) {
  constexpr float kMost = std::numeric_limits<float>::max();
  Box out{kMost, kMost, -kMost, -kMost};
  for (const auto& [x, y] : {std::pair{box[0], box[1]}, std::pair{box[2], box[1]},
                             std::pair{box[2], box[3]}, std::pair{box[0], box[3]}}) {
    const std::array<double, 2> to = move(double{x}, double{y});
    const auto u = static_cast<float>(to[0]), v = static_cast<float>(to[1]);
    out = {std::min(out[0], u), std::min(out[1], v), std::max(out[2], u), std::max(out[3], v)};
  }
  return out;
}

void move_boxes(Boxes& boxes, const internal::AffineMatrix& m) {
  const auto move = [&](double x, double y) {
    return std::array{m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
  };
  for (Box& box : boxes.corners) {
    box = around(box, move);
  }
}

std::array<double, 2> center_of(const std::optional<std::array<double, 2>>& center,
                                const Boxes& boxes) {
  return center.value_or(std::array{0.5 * boxes.width, 0.5 * boxes.height});
}

}  // namespace

void crop_boxes(Boxes& boxes, int top, int left, int height, int width) {
  const auto x = static_cast<float>(left), y = static_cast<float>(top);
  for (Box& box : boxes.corners) {
    box = {box[0] - x, box[1] - y, box[2] - x, box[3] - y};
  }
  boxes.height = height;
  boxes.width = width;
  clamp_to_canvas(boxes);
}

void resize_boxes(Boxes& boxes, int height, int width) {
  check(boxes.height >= 1 && boxes.width >= 1, "resize: got boxes on a canvas of ", boxes.height,
        " x ", boxes.width, ", expected the size of their image");
  const auto across = static_cast<float>(static_cast<double>(width) / boxes.width),
             down = static_cast<float>(static_cast<double>(height) / boxes.height);
  for (Box& box : boxes.corners) {
    box = {box[0] * across, box[1] * down, box[2] * across, box[3] * down};
  }
  boxes.height = height;
  boxes.width = width;
}

void horizontal_flip_boxes(Boxes& boxes) {
  const auto width = static_cast<float>(boxes.width);
  for (Box& box : boxes.corners) {
    box = {width - box[2], box[1], width - box[0], box[3]};
  }
}

void vertical_flip_boxes(Boxes& boxes) {
  const auto height = static_cast<float>(boxes.height);
  for (Box& box : boxes.corners) {
    box = {box[0], height - box[3], box[2], height - box[1]};
  }
}

void affine_boxes(Boxes& boxes, const Affine& affine) {
  move_boxes(boxes, internal::forward_of(affine, center_of(affine.center, boxes)));
  clamp_to_canvas(boxes);
}

void rotate_boxes(Boxes& boxes, const Rotation& rotation) {
  const Affine affine = internal::affine_of(rotation);
  const std::array<double, 2> center = center_of(rotation.center, boxes);
  const internal::AffineMatrix forward = internal::forward_of(affine, center);
  move_boxes(boxes, forward);
  if (rotation.expand) {
    const auto width = static_cast<float>(boxes.width), height = static_cast<float>(boxes.height);
    const Box frame = around({0, 0, width, height}, [&](double x, double y) {
      return std::array{forward[0] * x + forward[1] * y + forward[2],
                        forward[3] * x + forward[4] * y + forward[5]};
    });
    for (Box& box : boxes.corners) {
      box = {box[0] - frame[0], box[1] - frame[1], box[2] - frame[0], box[3] - frame[1]};
    }
    const auto size = internal::rotated_size(rotation, boxes.height, boxes.width);
    boxes.height = size[0];
    boxes.width = size[1];
  }
  clamp_to_canvas(boxes);
}

void perspective_boxes(Boxes& boxes, const std::array<double, 8>& c) {
  const double denominator = c[0] * c[4] - c[1] * c[3];
  check(denominator != 0, "perspective: the coefficients cannot be inverted for boxes");
  const std::array<double, 8> inverse = {
      (c[4] - c[5] * c[7]) / denominator,         (-c[1] + c[2] * c[7]) / denominator,
      (c[1] * c[5] - c[2] * c[4]) / denominator,  (-c[3] + c[5] * c[6]) / denominator,
      (c[0] - c[2] * c[6]) / denominator,         (-c[0] * c[5] + c[2] * c[3]) / denominator,
      (-c[4] * c[6] + c[3] * c[7]) / denominator, (-c[0] * c[7] + c[1] * c[6]) / denominator};
  for (Box& box : boxes.corners) {
    box = around(box, [&](double x, double y) {
      const double w = inverse[6] * x + inverse[7] * y + 1;
      return std::array{(inverse[0] * x + inverse[1] * y + inverse[2]) / w,
                        (inverse[3] * x + inverse[4] * y + inverse[5]) / w};
    });
  }
  clamp_to_canvas(boxes);
}

void sanitize_boxes(Boxes& boxes, double min_size, double min_area) {
  check(boxes.labels.empty() || boxes.labels.size() == boxes.corners.size(), "sanitize: got ",
        std::ssize(boxes.labels), " labels for ", std::ssize(boxes.corners), " boxes");
  size_t kept = 0;
  for (size_t i = 0; i < boxes.corners.size(); ++i) {
    const Box& box = boxes.corners[i];
    const double width = double{box[2]} - double{box[0]}, height = double{box[3]} - double{box[1]};
    if (width >= min_size && height >= min_size && width * height >= min_area) {
      boxes.corners[kept] = box;
      if (!boxes.labels.empty()) {
        boxes.labels[kept] = boxes.labels[i];
      }
      ++kept;
    }
  }
  boxes.corners.resize(kept);
  boxes.labels.resize(boxes.labels.empty() ? 0 : kept);
}

}  // namespace binade::data
