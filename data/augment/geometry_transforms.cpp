// Transforms that move pixels. Each draws its numbers from the size of what it changes, so that an
// image, its masks and its boxes get the same.
#include <binade/data/augment/augment.h>
#include <binade/data/augment/draws_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

using internal::check_probability;
using internal::draw_uniform;

void check_range(const char* op, const char* name, const Range& range) {
  check(std::isfinite(range[0]) && std::isfinite(range[1]) && range[0] <= range[1], op, ": got ",
        name, " ", range[0], " to ", range[1], ", expected finite numbers that rise");
}

void check_fill(const char* op, const Fill& fill, float mask_fill) {
  const auto is_byte = [](float value) { return value >= 0 && value <= 255; };
  check(std::all_of(fill.begin(), fill.end(), is_byte) && is_byte(mask_fill), op,
        ": got a fill that is not from 0 to 255");
}

Range around_zero(const char* op, double degrees) {
  check(degrees >= 0, op, ": got degrees ", degrees,
        ", expected at least 0 for a range around 0; give {low, high} for another one");
  return {-degrees, degrees};
}

// A transform with random parameters from draw(height, width, stream). The functions image, mask
// and boxes apply them: each gets its target and the parameters.
template <class Draw, class ChangeImage, class ChangeMask, class ChangeBoxes>
Transform moving(Draw draw, ChangeImage image, ChangeMask mask, ChangeBoxes boxes) {
  return {[=](Image& x, philox::Stream& random) { image(x, draw(x.height, x.width, random)); },
          [=](Image& x, philox::Stream& random) { mask(x, draw(x.height, x.width, random)); },
          [=](Boxes& x, philox::Stream& random) { boxes(x, draw(x.height, x.width, random)); }};
}

Warping for_masks(float fill) { return {.interpolation = Interpolation::nearest, .fill = {fill}}; }

// The corners of a picture of this size, each moved inwards at random.
Corners drawn_corners(int height, int width, double distortion, philox::Stream& random) {
  const int rows = static_cast<int>(distortion * (height / 2)) + 1,
            columns = static_cast<int>(distortion * (width / 2)) + 1;
  const auto below = [&](int bound) {
    return static_cast<int>(random.next_below(static_cast<uint32_t>(bound)));
  };
  Corners to;
  for (size_t i = 0; i < 4; ++i) {
    const int across = below(columns), down = below(rows);
    to[i] = {i == 1 || i == 2 ? width - columns + across : across,
             i >= 2 ? height - rows + down : down};
  }
  return to;
}

}  // namespace

Transform random_vertical_flip(double p) {
  check_probability("random_vertical_flip", p);
  const auto flip = [=](Image& image, philox::Stream& random) {
    if (draw_uniform(random, 0, 1) < p) {
      image = vertical_flip_image(image);
    }
  };
  return {flip, flip, [=](Boxes& boxes, philox::Stream& random) {
            if (draw_uniform(random, 0, 1) < p) {
              vertical_flip_boxes(boxes);
            }
          }};
}

Transform random_rotation(double degrees, const RandomRotationOptions& options) {
  return random_rotation(around_zero("random_rotation", degrees), options);
}

Transform random_rotation(Range degrees, const RandomRotationOptions& o) {
  check_range("random_rotation", "degrees", degrees);
  check_fill("random_rotation", o.fill, o.mask_fill);
  return moving(
      [=](int, int, philox::Stream& random) {
        return Rotation{.angle = draw_uniform(random, degrees[0], degrees[1]),
                        .expand = o.expand,
                        .center = o.center};
      },
      [=](Image& image, const Rotation& rotation) {
        image = rotate_image(image, rotation, {o.interpolation, o.fill});
      },
      [=](Image& mask, const Rotation& rotation) {
        mask = rotate_image(mask, rotation, for_masks(o.mask_fill));
      },
      rotate_boxes);
}

Transform random_affine(double degrees, const RandomAffineOptions& options) {
  return random_affine(around_zero("random_affine", degrees), options);
}

Transform random_affine(Range degrees, const RandomAffineOptions& o) {
  check_range("random_affine", "degrees", degrees);
  check_fill("random_affine", o.fill, o.mask_fill);
  const std::array<double, 2> translate = o.translate.value_or(std::array{0.0, 0.0});
  check(std::min(translate[0], translate[1]) >= 0 && std::max(translate[0], translate[1]) <= 1,
        "random_affine: got translate ", translate[0], ", ", translate[1],
        ", expected shares of 0 to 1");
  const Range scale = o.scale.value_or(Range{1, 1}), shear = o.shear.value_or(Range{0, 0}),
              shear_y = o.shear_y.value_or(Range{0, 0});
  check_range("random_affine", "scale", scale);
  check(scale[0] > 0, "random_affine: got scale ", scale[0], ", expected more than 0");
  check_range("random_affine", "shear", shear);
  check_range("random_affine", "shear_y", shear_y);
  return moving(
      [=](int height, int width, philox::Stream& random) {
        Affine drawn{.angle = draw_uniform(random, degrees[0], degrees[1]), .center = o.center};
        const double dx = translate[0] * width, dy = translate[1] * height;
        drawn.translate = {std::nearbyint(draw_uniform(random, -dx, dx)),
                           std::nearbyint(draw_uniform(random, -dy, dy))};
        drawn.scale = draw_uniform(random, scale[0], scale[1]);
        drawn.shear[0] = draw_uniform(random, shear[0], shear[1]);
        drawn.shear[1] = draw_uniform(random, shear_y[0], shear_y[1]);
        return drawn;
      },
      [=](Image& image, const Affine& affine) {
        image = affine_image(image, affine, {o.interpolation, o.fill});
      },
      [=](Image& mask, const Affine& affine) {
        mask = affine_image(mask, affine, for_masks(o.mask_fill));
      },
      affine_boxes);
}

Transform random_perspective(const RandomPerspectiveOptions& o) {
  check_probability("random_perspective", o.p);
  check_fill("random_perspective", o.fill, o.mask_fill);
  check(o.distortion_scale >= 0 && o.distortion_scale <= 1,
        "random_perspective: got distortion_scale ", o.distortion_scale, ", expected 0 to 1");
  using Drawn = std::optional<std::array<double, 8>>;
  return moving(
      [=](int height, int width, philox::Stream& random) -> Drawn {
        if (!(draw_uniform(random, 0, 1) < o.p) || height < 2 || width < 2) {
          return std::nullopt;
        }
        const Corners from{{{0, 0}, {width - 1, 0}, {width - 1, height - 1}, {0, height - 1}}};
        return perspective_coefficients(from,
                                        drawn_corners(height, width, o.distortion_scale, random));
      },
      [=](Image& image, const Drawn& drawn) {
        image = drawn ? perspective_image(image, *drawn, {o.interpolation, o.fill}) : image;
      },
      [=](Image& mask, const Drawn& drawn) {
        mask = drawn ? perspective_image(mask, *drawn, for_masks(o.mask_fill)) : mask;
      },
      [](Boxes& boxes, const Drawn& drawn) {
        if (drawn) {
          perspective_boxes(boxes, *drawn);
        }
      });
}

Transform pad(const Padded& padding, float mask_fill) {
  check_fill("pad", padding.fill, mask_fill);
  Padded of_masks = padding;
  of_masks.fill = {mask_fill};
  return {[=](Image& image, philox::Stream&) { image = pad_image(image, padding); },
          [=](Image& mask, philox::Stream&) { mask = pad_image(mask, of_masks); },
          [=](Boxes& boxes, philox::Stream&) {
            crop_boxes(boxes, -padding.top, -padding.left,
                       boxes.height + padding.top + padding.bottom,
                       boxes.width + padding.left + padding.right);
          }};
}

Transform sanitize_bounding_boxes(double min_size, double min_area) {
  const auto nothing = [](Image&, philox::Stream&) {};
  return {nothing, nothing,
          [=](Boxes& boxes, philox::Stream&) { sanitize_boxes(boxes, min_size, min_area); }};
}

Transform random_apply(Transform transform, double p) {
  check_probability("random_apply", p);
  return nested({std::move(transform)}, [p](philox::Stream& random) {
    return draw_uniform(random, 0, 1) < p ? std::vector<size_t>{0} : std::vector<size_t>();
  });
}

Transform random_choice(std::vector<Transform> transforms) {
  check(!transforms.empty(), "random_choice: got no transforms, expected at least one");
  const auto count = static_cast<uint32_t>(transforms.size());
  return nested(std::move(transforms), [count](philox::Stream& random) {
    return std::vector<size_t>{random.next_below(count)};
  });
}

Transform random_order(std::vector<Transform> transforms) {
  const size_t count = transforms.size();
  return nested(std::move(transforms), [count](philox::Stream& random) {
    return internal::draw_permutation(random, count);
  });
}

}  // namespace binade::data
