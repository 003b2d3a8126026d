// RandAugment, TrivialAugmentWide and AugMix: operations of a table, each with magnitudes.
#include <binade/data/augment/augment.h>
#include <binade/data/augment/draws_internal.h>
#include <binade/data/augment/image_ops_internal.h>
#include <binade/kernels/image/augment_bytes_isa_internal.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace binade::data {
namespace {

enum class Op : uint8_t {
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  posterize,
  solarize,
  autocontrast,
  equalize,
  brightness,
  color,
  contrast,
  sharpness,
  identity
};

// The magnitudes of an operation: evenly spaced from 0 to `most`; posterize removes up to `most`
// bits, and solarize goes from 1 to 0.
struct Entry {
  Op op;
  double most = 0;
  enum Unit : uint8_t { none, plain, of_width, of_height } unit = none;
  bool has_sign = true;
};

constexpr Entry kRandAugment[] = {{Op::identity},
                                  {Op::shear_x, 0.3, Entry::plain},
                                  {Op::shear_y, 0.3, Entry::plain},
                                  {Op::translate_x, 150.0 / 331, Entry::of_width},
                                  {Op::translate_y, 150.0 / 331, Entry::of_height},
                                  {Op::rotate, 30, Entry::plain},
                                  {Op::brightness, 0.9, Entry::plain},
                                  {Op::color, 0.9, Entry::plain},
                                  {Op::contrast, 0.9, Entry::plain},
                                  {Op::sharpness, 0.9, Entry::plain},
                                  {Op::posterize, 4, Entry::plain, false},
                                  {Op::solarize, 1, Entry::plain, false},
                                  {Op::autocontrast},
                                  {Op::equalize}};

constexpr Entry kTrivialAugment[] = {{Op::identity},
                                     {Op::shear_x, 0.99, Entry::plain},
                                     {Op::shear_y, 0.99, Entry::plain},
                                     {Op::translate_x, 32, Entry::plain},
                                     {Op::translate_y, 32, Entry::plain},
                                     {Op::rotate, 135, Entry::plain},
                                     {Op::brightness, 0.99, Entry::plain},
                                     {Op::color, 0.99, Entry::plain},
                                     {Op::contrast, 0.99, Entry::plain},
                                     {Op::sharpness, 0.99, Entry::plain},
                                     {Op::posterize, 6, Entry::plain, false},
                                     {Op::solarize, 1, Entry::plain, false},
                                     {Op::autocontrast},
                                     {Op::equalize}};

constexpr Entry kAugMix[] = {{Op::shear_x, 0.3, Entry::plain},
                             {Op::shear_y, 0.3, Entry::plain},
                             {Op::translate_x, 1.0 / 3, Entry::of_width},
                             {Op::translate_y, 1.0 / 3, Entry::of_height},
                             {Op::rotate, 30, Entry::plain},
                             {Op::posterize, 4, Entry::plain, false},
                             {Op::solarize, 1, Entry::plain, false},
                             {Op::autocontrast},
                             {Op::equalize},
                             {Op::brightness, 0.9, Entry::plain},
                             {Op::color, 0.9, Entry::plain},
                             {Op::contrast, 0.9, Entry::plain},
                             {Op::sharpness, 0.9, Entry::plain}};
constexpr size_t kPartialAugMix = 9;  // without the last four
constexpr int kAugMixBins = 10;
constexpr int kAugMixFirstBits = 4;  // posterize counts down from here, elsewhere from 8

// Magnitude `bin` of `bins`.
double magnitude_of(const Entry& entry, const Image& image, int bin, int bins, int first_bits) {
  const double share = bins > 1 ? static_cast<double>(bin) / (bins - 1) : 0;
  switch (entry.op) {
    case Op::posterize:  // half a bit is rounded to the even one
      return std::nearbyint(first_bits - share * entry.most);
    case Op::solarize: return 1 - share;
    default: break;
  }
  const double unit = entry.unit == Entry::of_width    ? image.width
                      : entry.unit == Entry::of_height ? image.height
                                                       : 1;
  return static_cast<double>(static_cast<float>(share * entry.most * unit));
}

// A shear of x' = x + m y around the top left corner.
Affine sheared(double x, double y) {
  constexpr double kDegrees = 180 / 3.14159265358979323846;
  return {.shear = {std::atan(x) * kDegrees, std::atan(y) * kDegrees},
          .center = std::array{0.0, 0.0}};
}

Image apply(Op op, double m, const Image& image, const Warping& warping) {
  switch (op) {
    case Op::shear_x: return affine_image(image, sheared(m, 0), warping);
    case Op::shear_y: return affine_image(image, sheared(0, m), warping);
    case Op::translate_x: return affine_image(image, {.translate = {std::trunc(m), 0}}, warping);
    case Op::translate_y: return affine_image(image, {.translate = {0, std::trunc(m)}}, warping);
    case Op::rotate: return rotate_image(image, {.angle = m}, warping);
    case Op::posterize: return posterize_image(image, static_cast<int>(m));
    case Op::solarize: return solarize_image(image, 255 * m);
    case Op::autocontrast: return autocontrast_image(image);
    case Op::equalize: return equalize_image(image);
    case Op::brightness: return adjust_brightness(image, 1 + m);
    case Op::color: return adjust_saturation(image, 1 + m);
    case Op::contrast: return adjust_contrast(image, 1 + m);
    case Op::sharpness: return adjust_sharpness(image, 1 + m);
    default: return image;
  }
}

// Draws an operation of the table and applies it with the magnitude that draw_bin(stream) names.
struct Policy {
  std::span<const Entry> table;
  int bins;
  int first_bits;
  Warping warping;

  template <class DrawBin>
  void change(Image& image, philox::Stream& random, const DrawBin& draw_bin) const {
    const Entry& entry = table[random.next_below(static_cast<uint32_t>(table.size()))];
    double magnitude = 0;
    if (entry.unit != Entry::none) {
      magnitude = magnitude_of(entry, image, draw_bin(random), bins, first_bits);
      if (entry.has_sign && internal::draw_uniform(random, 0, 1) <= 0.5) {
        magnitude = -magnitude;
      }
    }
    image = apply(entry.op, magnitude, image, warping);
  }
};

int draw_below(philox::Stream& random, int bound) {
  return static_cast<int>(random.next_below(static_cast<uint32_t>(bound)));
}

// A mixture of the image and of its results under several chains of operations.
Image mixture(const Image& image, const AugMixOptions& o, const Policy& policy,
              philox::Stream& random) {
  const auto own = internal::draw_dirichlet(random, o.alpha, 2);
  const auto weights = internal::draw_dirichlet(random, o.alpha, o.mixture_width);
  std::vector<float> sum(image.pixels.size(), 0.0f);
  const auto add = [&](const Image& part, double weight) {
    kernels::add_bytes_best(kernels::AddBytes{part.pixels.data(), static_cast<float>(weight),
                                              sum.data(), std::ssize(sum)});
  };
  add(image, own[0]);
  constexpr int kDeepest = 3;
  for (int i = 0; i < o.mixture_width; ++i) {
    Image part = image;
    const int depth = o.chain_depth > 0 ? o.chain_depth : 1 + draw_below(random, kDeepest);
    for (int k = 0; k < depth; ++k) {
      policy.change(part, random,
                    [&](philox::Stream& numbers) { return draw_below(numbers, o.severity); });
    }
    add(part, weights[static_cast<size_t>(i)] * own[1]);
  }
  Image out = internal::same_shape(image);
  std::transform(sum.begin(), sum.end(), out.pixels.begin(),
                 [](float value) { return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)); });
  return out;
}

constexpr int kBits = 8;

void check_bins(const char* op, int bins) {
  check(bins >= 2 && bins <= 1000, op, ": got num_magnitude_bins ", bins, ", expected 2 to 1000");
}

}  // namespace

Transform rand_augment(const RandAugmentOptions& o) {
  check_bins("rand_augment", o.num_magnitude_bins);
  check(o.num_ops >= 0 && o.num_ops <= 1000, "rand_augment: got num_ops ", o.num_ops,
        ", expected 0 to 1000");
  check(o.magnitude >= 0 && o.magnitude < o.num_magnitude_bins, "rand_augment: got magnitude ",
        o.magnitude, ", expected 0 to ", o.num_magnitude_bins - 1, ", one of the bins");
  const Policy policy{kRandAugment, o.num_magnitude_bins, kBits, {o.interpolation, o.fill}};
  return [=](Image& image, philox::Stream& random) {
    for (int i = 0; i < o.num_ops; ++i) {
      policy.change(image, random, [&](philox::Stream&) { return o.magnitude; });
    }
  };
}

Transform trivial_augment_wide(const TrivialAugmentWideOptions& o) {
  check_bins("trivial_augment_wide", o.num_magnitude_bins);
  const Policy policy{kTrivialAugment, o.num_magnitude_bins, kBits, {o.interpolation, o.fill}};
  return [=](Image& image, philox::Stream& random) {
    policy.change(image, random, [&](philox::Stream& numbers) {
      return draw_below(numbers, o.num_magnitude_bins);
    });
  };
}

Transform aug_mix(const AugMixOptions& o) {
  check(o.severity >= 1 && o.severity <= kAugMixBins, "aug_mix: got severity ", o.severity,
        ", expected 1 to 10");
  check(o.mixture_width >= 1 && o.mixture_width <= 1000, "aug_mix: got mixture_width ",
        o.mixture_width, ", expected 1 to 1000");
  check(o.chain_depth >= -1 && o.chain_depth <= 1000, "aug_mix: got chain_depth ", o.chain_depth,
        ", expected -1 (drawn) to 1000");
  check(o.alpha > 0 && std::isfinite(o.alpha), "aug_mix: got alpha ", o.alpha,
        ", expected more than 0");
  const std::span<const Entry> all(kAugMix);
  const Policy policy{o.all_ops ? all : all.first(kPartialAugMix),
                      kAugMixBins,
                      kAugMixFirstBits,
                      {o.interpolation, o.fill}};
  return [=](Image& image, philox::Stream& random) { image = mixture(image, o, policy, random); };
}

}  // namespace binade::data
