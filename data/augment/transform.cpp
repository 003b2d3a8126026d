// Transform: steps, each with a stream of random numbers of its own, on an image, its masks and its
// boxes.
#include <binade/data/augment/image_ops.h>
#include <binade/data/transforms.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/kernels/base/error.h>

#include <memory>

namespace binade::data {
namespace {

// Applies the window of the image to its mask, by nearest neighbour, so class ids are not mixed.
void apply_to_mask(const Window& window, Image& mask) {
  mask = crop_image(mask, window.top, window.left, window.height, window.width);
  if (window.out_height != 0 &&
      (window.out_height != window.height || window.out_width != window.width)) {
    mask = resize_nearest(mask, window.out_height, window.out_width);
  }
}

}  // namespace

Transform::Transform(Function image, Function mask, BoxFunction boxes) {
  if (image) {
    steps_.push_back({std::move(image), std::move(mask), std::move(boxes), nullptr});
  }
}

Transform window(Transform::WindowFunction choose) {
  if (!choose) {
    return {};
  }
  Transform transform(
      [choose](Image& image, philox::Stream& random) {
        const Window chosen = choose(image.height, image.width, random);
        Image out;
        internal::Geometry(chosen, image.height, image.width).apply(internal::view_of(image), out);
        image = std::move(out);
      },
      [choose](Image& mask, philox::Stream& random) {
        apply_to_mask(choose(mask.height, mask.width, random), mask);
      },
      [choose](Boxes& boxes, philox::Stream& random) {
        const Window chosen = choose(boxes.height, boxes.width, random);
        crop_boxes(boxes, chosen.top, chosen.left, chosen.height, chosen.width);
        if (chosen.out_height != 0) {
          resize_boxes(boxes, chosen.out_height, chosen.out_width);
        }
      });
  transform.steps_.back().window = std::move(choose);
  return transform;
}

void Transform::operator()(Image& image, philox::Stream& random) const {
  apply_to_image(image, random);
  random.next();
}

void Transform::operator()(Sample& sample, philox::Stream& random) const {
  apply_from(0, sample, random);
  random.next();
}

void Transform::apply_to_image(Image& image, const philox::Stream& random) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    philox::Stream own = random.part(i);
    steps_[i].image(image, own);
  }
}

void Transform::apply_to_mask(Image& mask, const philox::Stream& random,
                              const std::string& name) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    philox::Stream own = random.part(i);
    check(steps_[i].mask != nullptr,
          "transform: a function of your own does not say what it does to the mask", name,
          "; give Transform(image, mask), or pixelwise(image) if it moves no pixels");
    steps_[i].mask(mask, own);
  }
}

void Transform::apply_to_boxes(Boxes& boxes, const philox::Stream& random,
                               const std::string& name) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    philox::Stream own = random.part(i);
    check(steps_[i].boxes != nullptr,
          "transform: a function of your own does not say what it does to the boxes", name,
          "; give Transform(image, mask, boxes), or pixelwise(image) if it moves no pixels");
    steps_[i].boxes(boxes, own);
  }
}

void Transform::apply_from(size_t first_step, Sample& sample, const philox::Stream& random) const {
  Image& image = sample.image;
  if (first_step == 0) {
    for (const auto& [name, mask] : sample.masks) {
      check(mask.height == image.height && mask.width == image.width, "transform: the mask '", name,
            "' is ", mask.height, " x ", mask.width, ", expected ", image.height, " x ",
            image.width, ", the size of its image");
    }
    for (const auto& [name, boxes] : sample.boxes) {
      check(boxes.height == image.height && boxes.width == image.width,
            "transform: the canvas of the boxes '", name, "' is ", boxes.height, " x ", boxes.width,
            ", expected ", image.height, " x ", image.width, ", the size of their image");
    }
  }
  for (size_t i = first_step; i < steps_.size(); ++i) {
    philox::Stream own = random.part(i);
    steps_[i].image(image, own);
  }
  for (auto& [name, mask] : sample.masks) {
    apply_to_mask(mask, random, text(" '", name, "'"));
  }
  for (auto& [name, boxes] : sample.boxes) {
    apply_to_boxes(boxes, random, text(" '", name, "'"));
  }
}

Transform sequence(std::vector<Transform> steps) {
  Transform all;
  for (const Transform& transform : steps) {
    all.steps_.insert(all.steps_.end(), transform.steps_.begin(), transform.steps_.end());
  }
  return all;
}

Transform nested(std::vector<Transform> choices, ChoiceFunction choose) {
  const auto shared = std::make_shared<const std::vector<Transform>>(std::move(choices));
  // Calls apply(transform, stream) for each choice.
  const auto for_chosen = [shared, choose](philox::Stream& random, const auto& apply) {
    for (const size_t i : choose(random)) {
      check(i < shared->size(), "nested: got transform ", i, " of ", shared->size());
      apply((*shared)[i], random.part(i));
    }
  };
  return {[for_chosen](Image& image, philox::Stream& random) {
            for_chosen(random, [&](const Transform& one, const philox::Stream& own) {
              one.apply_to_image(image, own);
            });
          },
          [for_chosen](Image& mask, philox::Stream& random) {
            for_chosen(random, [&](const Transform& one, const philox::Stream& own) {
              one.apply_to_mask(mask, own, {});
            });
          },
          [for_chosen](Boxes& boxes, philox::Stream& random) {
            for_chosen(random, [&](const Transform& one, const philox::Stream& own) {
              one.apply_to_boxes(boxes, own, {});
            });
          }};
}

Transform pixelwise(Transform::Function image) {
  return {std::move(image), [](Image&, philox::Stream&) {}, [](Boxes&, philox::Stream&) {}};
}

}  // namespace binade::data
