// Compares every change of data/augment/image_ops.h with torchvision's (generate.py wrote the
// cases). Pixels that torchvision copies must be equal, except for a few half way between two
// pixels; others may differ by one level.
#include <binade/core/io/safetensors.h>
#include <binade/data/augment/image_ops.h>
#include <binade/data/transforms.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/data/test_files.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::data::transform_cases_test {
namespace {

struct Case {
  std::string op;
  std::vector<std::string> words;
  std::string input;

  double number(size_t i) const { return std::stod(words.at(i)); }
  int whole(size_t i) const { return std::stoi(words.at(i)); }
  // Parses numbers with commas between them; "none" and "middle" give none.
  std::vector<double> list(size_t i) const {
    std::vector<double> values;
    std::istringstream parts(words.at(i));
    for (std::string part; std::getline(parts, part, ',');) {
      if (part != "none" && part != "middle") {
        values.push_back(std::stod(part));
      }
    }
    return values;
  }
  std::optional<std::array<double, 2>> center(size_t i) const {
    const auto values = list(i);
    return values.empty() ? std::nullopt : std::optional(std::array{values.at(0), values.at(1)});
  }
  Interpolation mode(size_t i) const {
    const std::map<std::string, Interpolation> modes{
        {"nearest", Interpolation::nearest},
        {"bilinear", Interpolation::bilinear},
        {"bicubic", Interpolation::bicubic},
        {"nearest_exact", Interpolation::nearest_exact}};
    return modes.at(words.at(i));
  }
  Warping warping(size_t i) const {
    const auto values = list(i + 1);
    return {.interpolation = mode(i), .fill = {values.begin(), values.end()}};
  }
  Affine affine() const {
    return {.angle = number(0),
            .translate = {number(1), number(2)},
            .scale = number(3),
            .shear = {number(4), number(5)},
            .center = center(6)};
  }
  Rotation rotation() const {
    return {.angle = number(0), .expand = whole(1) != 0, .center = center(2)};
  }
  std::array<double, 8> perspective(int height, int width) const {
    const auto to = list(0);
    const Corners start{{{0, 0}, {width - 1, 0}, {width - 1, height - 1}, {0, height - 1}}};
    Corners end;
    for (size_t i = 0; i < 8; ++i) {
      end[i / 2][i % 2] = static_cast<int>(to.at(i));
    }
    return perspective_coefficients(start, end);
  }
};

Case parse(const std::string& name) {
  std::istringstream words(name);
  Case out;
  words >> out.op;
  for (std::string word; words >> word;) {
    (word[0] == '@' ? out.input : out.words.emplace_back()) = word.substr(word[0] == '@');
  }
  return out;
}

Image transformed(const Transform& transform, Image image) {
  philox::Stream random(1, 2);
  transform(image, random);
  return image;
}

using Change = Image (*)(const Case&, const Image&);
const std::map<std::string, Change>& changes() {
  using C = const Case&;
  using I = const Image&;
  static const std::map<std::string, Change> all{
      {"brightness", [](C c, I x) { return adjust_brightness(x, c.number(0)); }},
      {"contrast", [](C c, I x) { return adjust_contrast(x, c.number(0)); }},
      {"saturation", [](C c, I x) { return adjust_saturation(x, c.number(0)); }},
      {"sharpness", [](C c, I x) { return adjust_sharpness(x, c.number(0)); }},
      {"hue", [](C c, I x) { return adjust_hue(x, c.number(0)); }},
      {"gamma", [](C c, I x) { return adjust_gamma(x, c.number(0), c.number(1)); }},
      {"grayscale", [](C c, I x) { return rgb_to_grayscale(x, c.whole(0)); }},
      {"invert", [](C, I x) { return invert_image(x); }},
      {"autocontrast", [](C, I x) { return autocontrast_image(x); }},
      {"equalize", [](C, I x) { return equalize_image(x); }},
      {"posterize", [](C c, I x) { return posterize_image(x, c.whole(0)); }},
      {"solarize", [](C c, I x) { return solarize_image(x, c.number(0)); }},
      {"blur",
       [](C c, I x) {
         return gaussian_blur_image(x, {c.whole(0), c.whole(1), c.number(2), c.number(3)});
       }},
      {"affine", [](C c, I x) { return affine_image(x, c.affine(), c.warping(7)); }},
      {"rotate", [](C c, I x) { return rotate_image(x, c.rotation(), c.warping(3)); }},
      {"perspective",
       [](C c, I x) {
         return perspective_image(x, c.perspective(x.height, x.width), c.warping(1));
       }},
      {"hflip", [](C, I x) { return flip_image(x); }},
      {"vflip", [](C, I x) { return vertical_flip_image(x); }},
      {"pad",
       [](C c, I x) {
         const std::map<std::string, PaddingMode> modes{{"constant", PaddingMode::constant},
                                                        {"edge", PaddingMode::edge},
                                                        {"reflect", PaddingMode::reflect},
                                                        {"symmetric", PaddingMode::symmetric}};
         const auto fill = static_cast<float>(c.number(5));
         return pad_image(
             x, {c.whole(0), c.whole(1), c.whole(2), c.whole(3), modes.at(c.words[4]), {fill}});
       }},
      {"erase",
       [](C c, I x) {
         return erase_image(
             x, {.top = c.whole(0), .left = c.whole(1), .height = c.whole(2), .width = c.whole(3)});
       }},
      {"five_crop",
       [](C c, I x) {
         return five_crop(x, c.whole(0), c.whole(1)).at(static_cast<size_t>(c.whole(2)));
       }},
      {"ten_crop",
       [](C c, I x) {
         return ten_crop(x, c.whole(0), c.whole(1), true).at(static_cast<size_t>(c.whole(2)));
       }},
      {"center_crop", [](C c, I x) { return transformed(center_crop(c.whole(0), c.whole(1)), x); }},
      {"resize",
       [](C c, I x) {
         return transformed(resize(c.whole(0), c.whole(1), c.mode(2), c.whole(3) != 0), x);
       }},
      {"short_side",
       [](C c, I x) {
         return transformed(resize_short_side(c.whole(0), Interpolation::bilinear, c.whole(1)), x);
       }},
  };
  return all;
}

void change_boxes(const Case& c, Boxes& boxes) {
  if (c.op == "crop") {
    crop_boxes(boxes, c.whole(0), c.whole(1), c.whole(2), c.whole(3));
  } else if (c.op == "resize") {
    resize_boxes(boxes, c.whole(0), c.whole(1));
  } else if (c.op == "hflip") {
    horizontal_flip_boxes(boxes);
  } else if (c.op == "vflip") {
    vertical_flip_boxes(boxes);
  } else if (c.op == "affine") {
    affine_boxes(boxes, c.affine());
  } else if (c.op == "rotate") {
    rotate_boxes(boxes, c.rotation());
  } else {
    perspective_boxes(boxes, c.perspective(boxes.height, boxes.width));
  }
}

class Cases {
 public:
  Cases()
      : file_(SafetensorsFile::open(BINADE_SOURCE_DIR "/tests/data/augment/cases.safetensors")) {
    for (const TensorEntry& entry : file_.entries()) {
      entries_[entry.name] = entry;
    }
  }
  Image image(const std::string& name) const {
    const TensorEntry& entry = entries_.at(name);
    Image image = make_image(static_cast<int>(entry.sizes[0]), static_cast<int>(entry.sizes[1]),
                             static_cast<int>(entry.sizes[2]));
    file_.read(entry, std::as_writable_bytes(std::span(image.pixels)));
    return image;
  }
  Boxes boxes(const std::string& name) const {
    const TensorEntry& entry = entries_.at(name);
    Boxes boxes;
    boxes.corners.resize(static_cast<size_t>(entry.sizes[0]));
    file_.read(entry, std::as_writable_bytes(std::span(boxes.corners)));
    boxes.height = static_cast<int>(boxes.corners.back()[0]);
    boxes.width = static_cast<int>(boxes.corners.back()[1]);
    boxes.corners.pop_back();
    return boxes;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) {
      names.push_back(name);
    }
    return names;
  }

 private:
  SafetensorsFile file_;
  std::map<std::string, TensorEntry> entries_;
};

// The largest difference of two images of equal size, and the number of values that differ.
struct Difference {
  int largest = 0;
  int64_t count = 0;
};
Difference difference(const Image& a, const Image& b) {
  Difference out;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    const int d = std::abs(int(a.pixels[i]) - int(b.pixels[i]));
    out.largest = std::max(out.largest, d);
    out.count += d != 0;
  }
  return out;
}

TEST(TransformCases, images_are_those_of_torchvision) {
  const std::set<std::string> equal{"invert",    "posterize", "solarize",   "equalize",
                                    "hflip",     "vflip",     "pad",        "erase",
                                    "five_crop", "ten_crop",  "center_crop"};
  const Cases cases;
  std::map<std::string, int> seen;
  for (const std::string& name : cases.names()) {
    const Case one = parse(name);
    if (one.op == "input" || one.op == "boxes") {
      continue;
    }
    const Image expected = cases.image(name);
    const Image got = changes().at(one.op)(one, cases.image("input " + one.input));
    ASSERT_EQ(std::tuple(got.height, got.width, got.channels),
              std::tuple(expected.height, expected.width, expected.channels))
        << name;
    const Difference d = difference(got, expected);
    const bool copies = name.find("nearest") != std::string::npos;
    if (copies) {  // some lie half way between two pixels
      EXPECT_LE(static_cast<double>(d.count), 0.001 * static_cast<double>(got.pixels.size()))
          << name;
    } else {
      EXPECT_LE(d.largest, equal.contains(one.op) ? 0 : 1) << name;
    }
    ++seen[one.op];
  }
  EXPECT_EQ(seen.size(), changes().size());
}

TEST(TransformCases, boxes_are_those_of_torchvision) {
  const Cases cases;
  int seen = 0;
  for (const std::string& name : cases.names()) {
    if (!name.starts_with("boxes ") || name == "boxes input boxes") {
      continue;
    }
    Boxes got = cases.boxes("boxes input boxes");
    change_boxes(parse(name.substr(6)), got);
    const Boxes expected = cases.boxes(name);
    // The canvas of an expanded rotation is as large as the image's; torchvision's may be smaller.
    EXPECT_NEAR(got.height, expected.height, name.starts_with("boxes rotate 31.25 1") ? 1 : 0)
        << name;
    EXPECT_EQ(got.width, expected.width) << name;
    ASSERT_EQ(got.corners.size(), expected.corners.size());
    for (size_t i = 0; i < got.corners.size(); ++i) {
      for (size_t k = 0; k < 4; ++k) {
        EXPECT_NEAR(got.corners[i][k], expected.corners[i][k], 2e-4) << name << " " << i;
      }
    }
    ++seen;
  }
  EXPECT_GE(seen, 8);
}

TEST(NarrowerIsas, TransformCasesPass) { EXPECT_TRUE(kernels::passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::data::transform_cases_test
