// Binade's side of bench/peers/augment: reads lines "NAME COUNT" and answers each with the seconds
// that COUNT augmentations of a 224 x 224 picture took on this thread.
#include <binade/data/augment/augment.h>
#include <binade/kernels/base/error.h>

#include <chrono>
#include <iostream>
#include <map>
#include <string>

using namespace binade;

namespace {

constexpr int kSide = 224;

data::Image picture() {
  data::Image image = data::make_image(kSide, kSide, 3);
  philox::Stream random(1, 1);
  for (uint8_t& value : image.pixels) {
    value = static_cast<uint8_t>(random.next());
  }
  return image;
}

std::map<std::string, data::Transform> transforms() {
  const auto bilinear = data::Interpolation::bilinear;
  return {{"color_jitter", data::color_jitter(0.4, 0.4, 0.4, 0.1)},
          {"rotation", data::random_rotation(30, {.interpolation = bilinear})},
          {"affine",
           data::random_affine(20, {.scale = data::Range{0.8, 1.2}, .interpolation = bilinear})},
          {"perspective", data::random_perspective({.p = 1})},
          {"gaussian_blur", data::gaussian_blur(9)},
          {"autocontrast", data::random_autocontrast(1)},
          {"equalize", data::random_equalize(1)},
          {"sharpness", data::random_adjust_sharpness(2, 1)},
          {"erasing", data::random_erasing({.p = 1})},
          {"trivial_augment_wide", data::trivial_augment_wide()},
          {"rand_augment", data::rand_augment()},
          {"aug_mix", data::aug_mix()}};
}

double seconds_of(const data::Transform& transform, const data::Image& image, int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    data::Image changed = image;
    philox::Stream random = data::sample_stream(1, 0, i);
    transform(changed, random);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  try {
    const data::Image image = picture();
    const std::map<std::string, data::Transform> all = transforms();
    std::string name;
    for (int64_t count = 0; std::cin >> name >> count;) {
      const auto found = all.find(name);
      check(found != all.end(), "peer_augment: got '", name, "', expected a transform");
      std::cout << seconds_of(found->second, image, count) << std::endl;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "peer_augment: error: " << error.what() << '\n';
    return 1;
  }
}
