// Tests ImageTable: targets from a table, masks that follow transforms, and files that do not fit.
#include <binade/data/encode.h>
#include <binade/data/loader.h>
#include <binade/data/sets/image_table.h>

#include "tests/data/test_files.h"

namespace binade::data::image_table_test {
namespace {

namespace fs = std::filesystem;

class ImageTables : public ::testing::Test {
 protected:
  ImageTables() {
    for (int i = 0; i < 4; ++i) {
      picture(text("p", i, ".png"), i);
    }
  }
  // Saves an image and its mask: class 200 where the image is bright.
  void picture(const std::string& name, int i, int height = 8, int width = 6) {
    Image image = make_image(height, width, 3), mask = make_image(height, width, 1);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const bool bright = (x * 3 + y * 5 + i) % 4 == 0;
        std::fill_n(image.row(y) + 3 * x, 3, bright ? 255 : 0);
        mask.row(y)[x] = bright ? 200 : 0;
      }
    }
    test::write_file(images() / name, encode_png(image));
    test::write_file(masks() / name, encode_png(mask));
  }
  std::string table(const std::string& contents) const {
    test::write_file(folder_.path() / "t.csv", test::bytes_of(contents));
    return folder_.path() / "t.csv";
  }
  fs::path images() const { return folder_.path() / "images"; }
  fs::path masks() const { return folder_.path() / "masks"; }

  test::TemporaryFolder folder_;
};

TEST_F(ImageTables, several_labels_and_values) {
  const std::string csv = table("indoor,file,night\n1,p0.png,0\n0,p2.png,1\n1,p1.png,1\n");
  const ImageTable set({.folder = images(), .table = csv});
  EXPECT_EQ(set.size(), 3);
  Loader loader(set, {.batch = 3, .workers = 2, .shuffle = false});
  const Batch batch = *loader.begin();
  EXPECT_EQ(batch.images.sizes(), (Dims{3, 3, 8, 6}));
  EXPECT_EQ(batch.labels.to_vector<float>(), (std::vector<float>{1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(set.describe(1), (images() / "p2.png").native());
}

TEST_F(ImageTables, fields_and_a_class) {
  const std::string csv = table("file,kind,price,w,h\np0.png,b,9.5,1,2\np1.png,a,,3,4\n");
  const ImageTable set(
      {.folder = images(),
       .table = csv,
       .columns = {{"kind", CsvType::category}},
       .fields = {{"labels", {"kind"}}, {"price", {"price"}}, {"size", {"w", "h"}}}});
  EXPECT_EQ(set.class_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set.label(0), 1);
  EXPECT_EQ(set.get(0)["size"].sizes(), (Dims{2}));
  EXPECT_ERROR(set.get(1), "t.csv:3:3: column 'price': the value is missing");
  EXPECT_ERROR(ImageTable({.folder = images(), .table = csv, .file_column = "name"}),
               "no column 'name'");
}

// The mask of a transformed image must be the mask computed from that image.
TEST_F(ImageTables, masks_follow_their_image) {
  const ImageTable set({.folder = images(), .masks = masks()});
  EXPECT_EQ(set.size(), 4);
  const std::vector<std::pair<const char*, Transform>> transforms = {
      {"crop", random_crop(5, 4, 0)},
      {"flip", random_horizontal_flip()},
      {"center", center_crop(4, 3)},
      {"padded", center_crop(11, 12)},
      {"both", sequence({pixelwise([](Image&, philox::Stream& random) { random.next(); }),
                         random_crop(6, 5, 2), random_horizontal_flip(.5f)})}};
  for (const auto& [name, transform] : transforms) {
    Loader loader(set, {.batch = 4, .workers = 0, .transform = transform});
    for (int epoch = 0; epoch < 6; ++epoch) {
      const Batch batch = *loader.begin();
      const Tensor mask = batch["mask"];
      EXPECT_EQ(mask.dtype(), DType::i64);
      EXPECT_EQ(mask.sizes(), (Dims{4, batch.images.size(2), batch.images.size(3)}));
      const std::vector<float> pixels = batch.images.to_vector<float>();  // NCHW
      const auto plane = static_cast<size_t>(mask.size(1) * mask.size(2));
      const std::vector<int64_t> ids = mask.to_vector<int64_t>();
      for (size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(static_cast<float>(ids[i]), 200 * pixels[i / plane * 3 * plane + i % plane])
            << name;
      }
    }
  }
}

TEST_F(ImageTables, resized_masks_have_whole_ids) {
  const ImageTable set({.folder = images(), .masks = masks()});
  for (const Transform& transform :
       {resize(16, 12), resize(3, 5), random_resized_crop(7, 7), resize_short_side(12)}) {
    Loader loader(set, {.batch = 4, .workers = 0, .transform = transform});
    const Batch batch = *loader.begin();
    EXPECT_EQ(batch["mask"].size(1), batch.images.size(2));
    for (const int64_t id : batch["mask"].to_vector<int64_t>()) {
      EXPECT_TRUE(id == 0 || id == 200) << id;
    }
  }
  const Image small = resize_nearest(Image{1, 4, 1, {0, 10, 20, 30}}, 2, 2);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{10, 30, 10, 30}));
}

TEST_F(ImageTables, a_transform_of_ones_own_says_what_masks_get) {
  const ImageTable set({.folder = images(), .masks = masks()});
  const auto first = [&](Transform transform) {
    Loader loader(set, {.workers = 0, .transform = std::move(transform)});
    return *loader.begin();
  };
  const auto flip = [](Image& image, philox::Stream&) { image = flip_image(image); };
  EXPECT_ERROR(first(flip), "does not say what it does to the mask 'mask'");
  EXPECT_EQ(first(Transform(flip, flip))["mask"].sizes(), (Dims{4, 8, 6}));
  EXPECT_EQ(
      first(pixelwise([](Image& image, philox::Stream&) { image.pixels[0] = 1; }))["mask"].size(0),
      4);
  const auto crop = [](Image& image, philox::Stream&) { image = crop_image(image, 0, 0, 2, 2); };
  EXPECT_ERROR(first(pixelwise(crop)), "has the mask 'mask' of 8 x 6 x 1, expected 2 x 2 x 1");
}

TEST_F(ImageTables, masks_by_column_and_their_faults) {
  test::write_file(masks() / "colour.png", encode_png(make_image(8, 6, 3)));
  test::write_file(masks() / "small.png", encode_png(make_image(2, 6, 1)));
  const std::string csv = table(
      "file,mask,v\np0.png,p1.png,1\np1.png,none.png,1\np2.png,colour.png,1\np3.png,small.png,1\n");
  const ImageTable set({.folder = images(),
                        .table = csv,
                        .masks = masks(),
                        .mask_column = "mask",
                        .mask_name = "m"});
  EXPECT_EQ(set.get(0).masks[0].first, "m");
  EXPECT_FALSE(set.get(0).has("mask"));
  EXPECT_ERROR(set.get(1), "none.png");
  EXPECT_ERROR(set.get(2), "colour.png: the mask is a picture in colour");
  EXPECT_ERROR(set.get(3), "small.png: the mask is 2 x 6, expected 8 x 6");
  Loader skipping(set, {.workers = 0, .bad_file = BadFilePolicy::skip});
  EXPECT_EQ((*skipping.begin()).size, 1);
  fs::remove(masks() / "p3.png");
  EXPECT_ERROR(ImageTable({.folder = images(), .masks = masks()}).get(3), "p3.png: no mask");
}

TEST_F(ImageTables, misuse_is_an_error) {
  const auto paths = [&](const std::string& file) {
    return error_of(
        [&] { ImageTable({.folder = images(), .table = table("file,v\n" + file + ",1\n")}); });
  };
  for (const char* outside : {"../p0.png", "/p0.png", "a/../../p0.png", ""}) {
    EXPECT_TRUE(test::contains(paths(outside), "t.csv:2: got the path")) << paths(outside);
  }
  EXPECT_ERROR(ImageTable({.folder = folder_.path() / "none"}), "no such folder");
  EXPECT_ERROR(ImageTable({.folder = images(), .masks = folder_.path() / "none"}),
               "no such folder of masks");
  EXPECT_ERROR(ImageTable({.folder = images(), .masks = masks(), .mask_column = "m"}),
               "needs a table");
  EXPECT_ERROR(ImageTable({.folder = images(), .fields = {{"x", {"v"}}}}), "without a table");
  EXPECT_ERROR(ImageTable({.folder = images(), .decode = {.channels = 4}}), "channels 4");
  fs::create_directories(folder_.path() / "empty");
  EXPECT_ERROR(ImageTable({.folder = folder_.path() / "empty"}), "no images");
  const ImageTable missing({.folder = images(), .table = table("file,v\nnone.png,1\n")});
  EXPECT_ERROR(missing.get(0), "none.png");
}

TEST_F(ImageTables, checksums_are_compared) {
  ChecksumManifest::compute(folder_.path()).write();
  const ImageTable set({.folder = images(), .masks = masks(), .checksums = Checksums::require});
  EXPECT_EQ(set.get(0).masks.size(), 1u);
  picture("p1.png", 3);
  EXPECT_ERROR(set.get(1), "p1.png");
  picture("new.png", 3);
  EXPECT_ERROR(ImageTable({.folder = images()}).get(0), "new.png: not listed in");
}

}  // namespace
}  // namespace binade::data::image_table_test
