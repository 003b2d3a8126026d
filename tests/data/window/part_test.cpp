// Decoding a part of a JPEG gives the pixels of decoding all of it and cropping, for every kind of
// file, and the same errors. The loader's batches do not depend on how much is decoded.
#include <binade/data/encode.h>
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>
#include <binade/data/sets/combine.h>
#include <binade/data/window/image_request.h>

#include <cmath>

#include "tests/data/image_stream.h"
#include "tests/data/test_files.h"

namespace binade::data::part_test {
namespace {

using test::decode;
using test::picture;
using test::with_orientation;
using Bytes = std::vector<uint8_t>;

constexpr double kWhole = 0;

// Applies a transform of windows to a file that is decoded in part or as a whole.
Image in_part(const Bytes& file, const Transform& transform, uint64_t seed,
              DecodeOptions options = {}, double reducing_gap = kWhole) {
  philox::Stream random(seed, 1);
  ImageRequest request(transform, random, reducing_gap);
  return request.decode(file, "file.img", options);
}

Image as_a_whole(const Bytes& file, const Transform& transform, uint64_t seed,
                 DecodeOptions options = {}) {
  philox::Stream random(seed, 1);
  Image image = decode(file, options);
  transform(image, random);
  return image;
}

const Transform& small_crop() {
  static const Transform crop = window([](int height, int width, philox::Stream& random) {
    const auto below = [&](int bound) {
      return static_cast<int>(random.next_below(static_cast<uint32_t>(bound)));
    };
    Window window{.height = 1 + below(height), .width = 1 + below(width)};
    window.top = below(height - window.height + 1);
    window.left = below(width - window.width + 1);
    return window;
  });
  return crop;
}

std::vector<Bytes> stored_files() {
  std::vector<Bytes> files;
  const std::filesystem::path folder =
      std::filesystem::path(BINADE_SOURCE_DIR) / "tests/fuzz/corpus/jpeg";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().native().starts_with("good-")) {
      files.push_back(read_file(entry.path(), 1 << 20));
    }
  }
  EXPECT_GE(files.size(), 8u);
  return files;
}

class Part : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_libjpeg()) {
      GTEST_SKIP() << "skipped: no libjpeg";
    }
  }
};

TEST_F(Part, has_the_pixels_of_the_whole) {
  std::vector<Bytes> files = stored_files();  // subsampled, CMYK, grey, progressive
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 300}, {300, 1}, {17, 33}, {131, 250}}) {
    for (const int channels : {1, 3}) {
      files.push_back(encode_jpeg(picture(height, width, channels, 4), 85));
    }
  }
  const Transform chain = sequence({resize_short_side(40), center_crop(32, 32)});
  for (size_t i = 0; i < files.size(); ++i) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const DecodeOptions options{.channels = std::array{0, 1, 3, 4}[seed % 4]};
      for (const Transform& transform : {small_crop(), random_resized_crop(20, 24), chain}) {
        ASSERT_EQ(in_part(files[i], transform, seed, options),
                  as_a_whole(files[i], transform, seed, options))
            << "file " << i << ", seed " << seed;
      }
    }
  }
}

TEST_F(Part, follows_the_orientation) {
  const Bytes file = encode_jpeg(picture(61, 94, 3, 2), 90);
  for (uint8_t orientation = 1; orientation <= 8; ++orientation) {
    const Bytes turned = with_orientation(file, orientation);
    for (uint64_t seed = 0; seed < 40; ++seed) {
      for (const DecodeOptions& options :
           {DecodeOptions{}, DecodeOptions{.apply_orientation = false}}) {
        ASSERT_EQ(in_part(turned, small_crop(), seed, options),
                  as_a_whole(turned, small_crop(), seed, options))
            << int{orientation};
      }
    }
  }
}

TEST_F(Part, pads_where_the_window_leaves_the_image) {
  const Bytes file = encode_jpeg(picture(30, 40, 3, 2), 90);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const Transform& transform :
         {random_crop(30, 40, 9), center_crop(50, 20), center_crop(33, 90)}) {
      ASSERT_EQ(in_part(file, transform, seed), as_a_whole(file, transform, seed));
    }
  }
  const Transform outside = window([](int, int, philox::Stream&) {
    return Window{.top = -50, .left = 70, .height = 5, .width = 6};
  });
  EXPECT_EQ(in_part(file, outside, 0), as_a_whole(file, outside, 0));
}

TEST_F(Part, every_truncation_is_an_error) {
  const Bytes file = encode_jpeg(picture(60, 50, 3, 2), 80);
  const Transform top =
      window([](int, int, philox::Stream&) { return Window{.height = 5, .width = 5}; });
  for (size_t length = 0; length < file.size(); ++length) {
    const Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_ERROR(in_part(cut, top, 0), "file.img");
  }
  EXPECT_EQ(in_part(file, top, 0).height, 5);
}

TEST_F(Part, damage_is_found_as_in_the_whole) {
  const Bytes file = encode_jpeg(picture(48, 48, 3, 5), 80);
  const Transform crop = window([](int, int, philox::Stream&) {
    return Window{.top = 3, .left = 17, .height = 9, .width = 9};
  });
  for (size_t bit = 0; bit < 8 * file.size(); bit += 3) {
    Bytes broken = file;
    broken[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const DecodeOptions options{.limits = {.max_pixels = 1 << 20}};
    Image part, whole;
    std::string of_part = error_of([&] { part = in_part(broken, crop, 0, options); });
    std::string of_whole = error_of([&] { whole = as_a_whole(broken, crop, 0, options); });
    ASSERT_EQ(of_part, of_whole) << "bit " << bit;
    ASSERT_EQ(part, whole) << "bit " << bit;
  }
}

TEST_F(Part, limits_hold) {
  const Bytes file = encode_jpeg(picture(60, 50, 3, 2), 80);
  EXPECT_ERROR(in_part(file, small_crop(), 0, {.limits = {.max_side = 59}}), "50 x 60");
  EXPECT_ERROR(in_part(file, small_crop(), 0, {.limits = {.max_file_bytes = 10}}), "limit");
  EXPECT_ERROR(in_part(file, small_crop(), 0, {.channels = 2}), "channels 2");
  EXPECT_ERROR(in_part(file, random_crop(61, 50), 0), "random_crop: got an image of 60 x 50");
}

// The mean and the largest difference of all pixels.
std::pair<double, int> differences(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  int64_t sum = 0;
  int largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    const int difference = std::abs(a.pixels[i] - b.pixels[i]);
    sum += difference;
    largest = std::max(largest, difference);
  }
  return {static_cast<double>(sum) / static_cast<double>(a.pixels.size()), largest};
}

TEST_F(Part, reduced_decoding_stays_close) {
  Image photo = make_image(403, 397, 3);  // waves of all lengths, as in a photograph
  for (int y = 0; y < photo.height; ++y) {
    for (int x = 0; x < photo.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = 60 * std::sin(0.0004 * x * x + c) + 50 * std::cos(0.03 * y + 0.02 * x);
        photo.row(y)[3 * x + c] = static_cast<uint8_t>(128 + wave);
      }
    }
  }
  const Bytes file = encode_jpeg(photo, 92);
  const struct {
    int side;
    double gap;
    bool reduced;
  } cases[] = {{48, 2, true}, {100, 2, false}, {99, 2, true}, {24, 2, true}, {180, 1, true}};
  for (const auto& row : cases) {
    const Transform transform = resize(row.side, row.side);
    const Image exact = in_part(file, transform, 0);
    const Image reduced = in_part(file, transform, 0, {}, row.gap);
    const auto [mean, largest] = differences(exact, reduced);
    EXPECT_EQ(reduced != exact, row.reduced) << row.side;
    EXPECT_LE(mean, row.gap >= 2 ? 1.5 : 4) << row.side;
    EXPECT_LE(largest, row.gap >= 2 ? 14 : 60) << row.side;
  }
}

struct Folder {
  test::TemporaryFolder folder;

  Folder() {
    for (int i = 0; i < 12; ++i) {
      const std::string name = text("train/", i % 2, "/", i, ".jpg");
      test::write_file(
          folder.path() / name,
          encode_jpeg(picture(60 + i, 90 - 3 * i, i == 5 ? 1 : 3, static_cast<uint64_t>(i)), 85));
    }
    test::write_file(folder.path() / "test/0/a.jpg", encode_jpeg(picture(40, 40, 3, 1), 85));
  }
};

TEST_F(Part, batches_do_not_depend_on_cache_or_workers) {
  const Folder folder;
  const ImageFolder photos(folder.folder.path(), ::binade::data::Part::train);
  const Transform augment = sequence({random_resized_crop(20, 24), random_horizontal_flip()});
  const auto stream = [&](const DatasetPtr& dataset, int workers, int64_t cache, int64_t first) {
    Loader loader(
        dataset,
        {.batch = 5, .workers = workers, .seed = 3, .transform = augment, .cache_bytes = cache});
    test::read_stream(loader, 0);
    return test::read_stream(loader, 1, first);
  };
  // A dataset that ignores requests returns the whole image.
  const auto whole = map(photos, [](Sample sample) { return sample; });
  const test::Stream expected = stream(whole, 0, 0, 0);
  EXPECT_EQ(expected.indices.size(), 12u);
  for (const int workers : {0, 1, 2, 8}) {
    for (const int64_t cache : {int64_t{0}, int64_t{40'000}, int64_t{1} << 30}) {
      EXPECT_EQ(stream(photos, workers, cache, 0), expected) << workers << " " << cache;
    }
  }
  EXPECT_EQ(stream(concat({photos}), 2, 0, 0), expected);
  std::vector<int64_t> all(12);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<int64_t>(i);
  }
  EXPECT_EQ(stream(subset(photos, all), 2, 0, 0), expected);
  EXPECT_EQ(stream(photos, 2, 0, 1), stream(whole, 0, 0, 1));
}

TEST_F(Part, bad_files_are_named_and_wrong_transforms_are_fatal) {
  const Folder folder;
  Bytes cut = encode_jpeg(picture(50, 50, 3, 1), 85);
  cut.resize(cut.size() - 40);
  test::write_file(folder.folder.path() / "train/0/4.jpg", cut);
  const ImageFolder photos(folder.folder.path(), ::binade::data::Part::train);
  const auto run = [&](Transform transform, BadFilePolicy policy) {
    Loader loader(photos, {.batch = 4,
                           .workers = 1,
                           .transform = std::move(transform),
                           .bad_file = policy,
                           .cache_bytes = 0});
    test::read_stream(loader, 0);
    return loader.bad_files();
  };
  const auto bad = run(random_resized_crop(8, 8), BadFilePolicy::replace);
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_NE(bad[0].path.find("train/0/4.jpg"), std::string::npos);
  EXPECT_ERROR(run(random_resized_crop(8, 8), BadFilePolicy::fail), "train/0/4.jpg");
  EXPECT_ERROR(run(random_crop(500, 500), BadFilePolicy::replace), "random_crop: got an image");
}

TEST_F(Part, dtype_and_memory_format_of_batches) {
  const Folder folder;
  const ImageFolder photos(folder.folder.path(), ::binade::data::Part::train);
  const auto first = [&](DType dtype, bool channels_last) {
    Loader loader(photos, {.batch = 3,
                           .workers = 0,
                           .shuffle = false,
                           .transform = resize(13, 17),
                           .mean = {.4f, .5f, .6f},
                           .deviation = {.2f, .3f, .4f},
                           .image_dtype = dtype,
                           .channels_last = channels_last});
    return (*loader.begin()).images;
  };
  const Tensor plain = first(DType::f32, true);
  EXPECT_TRUE(plain.is_channels_last());
  for (const bool channels_last : {true, false}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Tensor other = first(dtype, channels_last);
      EXPECT_EQ(other.dtype(), dtype);
      EXPECT_EQ(other.is_contiguous(), !channels_last);
      const Tensor same = plain.to(dtype).to(DType::f32).contiguous();
      const Tensor values = other.to(DType::f32).contiguous();
      ASSERT_EQ(values.sizes(), (Dims{3, 3, 13, 17}));
      for (int64_t i = 0; i < same.numel(); ++i) {
        ASSERT_EQ(values.data<float>()[i], same.data<float>()[i]) << i;
      }
    }
  }
  EXPECT_ERROR(first(DType::f64, true), "image_dtype f64");
  EXPECT_ERROR(Loader(photos, {.reducing_gap = 0.5}), "reducing_gap 0.5");
}

}  // namespace
}  // namespace binade::data::part_test
