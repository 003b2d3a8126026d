#include <binade/core/observe/warning.h>
#include <binade/data/encode.h>
#include <binade/data/identity.h>
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "tests/data/test_files.h"

namespace binade::data::image_folder_test {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void add(const std::string& name, int side = 4) {
    test::write_file(root() / name, encode_png(test::picture(side, side, 3, name.size())));
  }
  const fs::path& root() const { return folder_.path(); }
  ImageFolder open(Part part) const { return ImageFolder(root(), part); }

  // Returns the warnings issued by `f`.
  template <class F>
  static std::vector<std::string> warnings_of(F&& f) {
    std::vector<std::string> seen;
    const auto before = set_warning_handler([&](const std::string& text) { seen.push_back(text); });
    f();
    set_warning_handler(before);
    return seen;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(Folder, train_and_test_folders) {
  for (const char* name : {"train/b/2.png", "train/b/10.PNG", "train/a/x.png", "train/Z/1.png",
                           "test/a/1.png", "test/b/1.png", "train/.hidden/1.png"}) {
    add(name);
  }
  test::write_file(root() / "train/a/notes.txt", test::bytes_of("no picture"));
  fs::create_directories(root() / "train/a/deeper.png");
  const ImageFolder train = open(Part::train), test = open(Part::test);
  EXPECT_EQ(train.class_names(), (std::vector<std::string>{"Z", "a", "b"}));
  EXPECT_EQ(test.class_names(), train.class_names());
  ASSERT_EQ(train.size(), 4);
  EXPECT_EQ(train.describe(2), (root() / "train/b/10.PNG").native());
  EXPECT_EQ(train.get(2).label, 2);
  EXPECT_EQ(train.ignored_files(), 2);
  EXPECT_EQ(test.size(), 2);
  EXPECT_EQ(test.get(0).label, 1);
  EXPECT_EQ(test.get(0).image.channels, 3);
  EXPECT_ERROR(train.get(4), "index 4");
}

TEST_F(Folder, the_identity_is_of_names_and_labels_wherever_it_lies) {
  for (const char* name : {"x/train/a/1.png", "x/train/b/2.png", "x/test/a/1.png"}) {
    add(name);
  }
  const DataIdentity before = identify(ImageFolder(root() / "x", Part::train));
  fs::rename(root() / "x", root() / "y");
  EXPECT_EQ(identify(ImageFolder(root() / "y", Part::train)), before);
  fs::rename(root() / "y/train/a/1.png", root() / "y/train/b/1.png");
  add("y/train/a/2.png");
  EXPECT_EQ(difference(identify(ImageFolder(root() / "y", Part::train)), before),
            "3 samples instead of 2");
  fs::remove(root() / "y/train/b/1.png");
  EXPECT_EQ(difference(identify(ImageFolder(root() / "y", Part::train)), before), "other samples");
}

TEST_F(Folder, val_stands_for_test) {
  for (const char* name : {"train/a/1.png", "val/a/1.png"}) {
    add(name);
  }
  EXPECT_EQ(open(Part::test).describe(0), (root() / "val/a/1.png").native());
}

TEST_F(Folder, flat_folder_is_split_by_seed_and_path) {
  for (int i = 0; i < 100; ++i) {
    add(text("cat/", i, ".png"), 1);
    add(text("dog/", i, ".png"), 1);
  }
  const ImageFolder train = open(Part::train), test = open(Part::test);
  EXPECT_EQ(train.size() + test.size(), 200);
  EXPECT_NEAR(static_cast<double>(test.size()), 20, 14);
  std::set<std::string> names;
  for (int64_t i = 0; i < train.size(); ++i) {
    names.insert(train.describe(i));
  }
  for (int64_t i = 0; i < test.size(); ++i) {
    EXPECT_TRUE(names.insert(test.describe(i)).second) << "in both parts";
  }
  const ImageFolder other(root(), Part::test, {.seed = 1});
  EXPECT_TRUE(other.size() != test.size() || other.describe(0) != test.describe(0) ||
              other.describe(1) != test.describe(1));
}

TEST_F(Folder, links_to_files_are_followed) {
  add("store/1.png");
  fs::create_directories(root() / "data/train/a");
  fs::create_symlink(root() / "store/1.png", root() / "data/train/a/link.png");
  fs::create_symlink(root() / "nowhere.png", root() / "data/train/a/dangling.png");
  add("data/test/a/1.png");
  const ImageFolder train(root() / "data", Part::train);
  EXPECT_EQ(train.size(), 1);
  EXPECT_EQ(train.ignored_files(), 1);
  EXPECT_EQ(train.get(0).image.width, 4);
}

// Every entry with an image's name is used or reported, and no entry blocks the listing.
TEST_F(Folder, odd_entries_are_named_once) {
  add("train/a/good.png");
  add("test/a/good.png");
  add("train/outside the classes.png");
  ASSERT_EQ(::mkfifo((root() / "train/a/fifo.png").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((root() / "train/pipe").c_str(), 0600), 0);
  fs::create_directories(root() / "train/a/folder.jpg");
  fs::create_symlink("nowhere", root() / "train/a/dangling.png");
  fs::create_symlink("/dev/null", root() / "train/a/null.png");
  test::write_file(root() / "train/a/notes\x1b[2J\n.txt", test::bytes_of("x"));
  test::write_file(root() / "train/a/empty.png", {});
  std::optional<ImageFolder> train;
  const auto seen = warnings_of([&] { train.emplace(root(), Part::train); });
  EXPECT_EQ(train->size(), 2);  // the empty file is an error only when it is read
  EXPECT_ERROR(train->get(0), "empty.png: the file is empty");
  EXPECT_EQ(train->ignored_files(), 7);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(test::contains(seen[0], "5 entries are no regular files")) << seen[0];
  EXPECT_TRUE(test::contains(seen[0], "train/pipe (a FIFO)")) << seen[0];
  EXPECT_TRUE(test::contains(seen[0], "dangling.png (a link to nothing)")) << seen[0];
  EXPECT_TRUE(test::contains(seen[1], "2 entries are not in a class folder")) << seen[1];
  EXPECT_TRUE(test::contains(seen[1], "notes\\x1b[2J\\x0a.txt")) << seen[1];
}

TEST_F(Folder, links_out_of_the_folder_are_counted_or_refused) {
  add("data-store/1.png");
  add("data/train/a/1.png");
  add("data/test/a/1.png");
  fs::create_symlink(root() / "data/train/a/1.png", root() / "data/train/a/inside.png");
  const auto refusing = [&] {
    return ImageFolder(root() / "data", Part::train, {.outside_links = OutsideLinks::refuse});
  };
  EXPECT_EQ(refusing().size(), 2);
  fs::create_symlink(root() / "data-store/1.png", root() / "data/train/a/outside.png");
  fs::create_directory_symlink(root() / "data-store", root() / "data/train/b");
  const auto seen = warnings_of([&] { ImageFolder(root() / "data", Part::train); });
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(test::contains(seen[0], "2 links lead out of the data folder")) << seen[0];
  EXPECT_ERROR(refusing(), "b: the link leads to");
  fs::remove(root() / "data/train/b");
  EXPECT_ERROR(refusing(), "outside.png: the link leads to");
  EXPECT_ERROR(
      open_dataset(root() / "data", Format::folder, {.outside_links = OutsideLinks::refuse}),
      "outside.png");
}

// The header of an uncompressed TGA file.
std::vector<uint8_t> tga_header(const Image& image) {
  std::vector<uint8_t> bytes(18);
  bytes[2] = 2;  // colours
  bytes[12] = static_cast<uint8_t>(image.width);
  bytes[14] = static_cast<uint8_t>(image.height);
  bytes[16] = 24;
  return bytes;
}

// The headers of an uncompressed BMP file.
std::vector<uint8_t> bmp_header(const Image& image) {
  std::vector<uint8_t> bytes(54);
  bytes[0] = 'B';
  bytes[1] = 'M';
  bytes[10] = 54;
  bytes[14] = 40;
  bytes[18] = static_cast<uint8_t>(image.width);
  bytes[22] = static_cast<uint8_t>(image.height);
  bytes[26] = 1;
  bytes[28] = 24;
  return bytes;
}

// Covers every format, and changed bits that the decoder alone accepts.
TEST_F(Folder, a_changed_byte_is_an_error_with_checksums) {
  const Image image = test::picture(6, 4, 3, 1);  // rows of 12 bytes: a BMP needs no padding
  const auto with_pixels = [&](std::vector<uint8_t> header) {
    header.insert(header.end(), image.pixels.begin(), image.pixels.end());
    return header;
  };
  std::vector<std::pair<std::string, std::vector<uint8_t>>> files = {
      {"train/a/1.png", encode_png(image)},
      {"train/a/2.ppm", with_pixels(test::bytes_of("P6\n4 6\n255\n"))},
      {"train/a/3.bmp", with_pixels(bmp_header(image))},
      {"train/a/4.tga", with_pixels(tga_header(image))}};
  if (has_libjpeg()) {
    files.emplace_back("train/a/5.jpg", encode_jpeg(image, 90));
  }
  add("test/a/1.png");
  for (const auto& [name, bytes] : files) {
    test::write_file(root() / name, bytes);
  }
  ChecksumManifest::compute(root()).write();
  for (size_t i = 0; i < files.size(); ++i) {
    const auto& [name, bytes] = files[i];
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += 13) {
      std::vector<uint8_t> changed = bytes;
      changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      test::write_file(root() / name, changed);
      EXPECT_ERROR(open(Part::train).get(static_cast<int64_t>(i)),
                   name + ": the file has the checksum");
    }
    test::write_file(root() / name, std::span(bytes).first(bytes.size() - 1));
    EXPECT_ERROR(open(Part::train).get(static_cast<int64_t>(i)), "it was changed or cut off");
  }
  test::write_file(root() / "train/a/1.png", files[0].second);
  const ImageFolder train = open(Part::train);
  Loader loader(train, {.batch = 5, .bad_file = BadFilePolicy::skip});
  Batch batch;
  loader.epoch(0);
  EXPECT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.size, 1);
  EXPECT_EQ(loader.bad_files().size(), files.size() - 1);
}

TEST_F(Folder, the_list_of_images_must_be_that_of_the_manifest) {
  for (const char* name : {"train/a/1.png", "train/a/2.png", "test/a/1.png", "test/b\\\x01/1.png",
                           "train/b\\\x01/1.png"}) {
    add(name);
  }
  EXPECT_ERROR(ImageFolder(root(), Part::train, {.checksums = Checksums::require}),
               "no binade-checksums.txt in the folder or above");
  ChecksumManifest::compute(root()).write();
  EXPECT_EQ(ChecksumManifest::read(root()).entries(), ChecksumManifest::compute(root()).entries());
  EXPECT_EQ(open(Part::train).size(), 3);
  EXPECT_EQ(ImageFolder(root() / "train/.." / ".", Part::test).size(), 2);  // the same folder
  fs::rename(root() / "train/a/2.png", root() / "train/a/3.png");
  EXPECT_ERROR(open(Part::train), "2 images differ from the list");
  EXPECT_ERROR(open(Part::train), "a/3.png is not listed, a/2.png is missing");
  EXPECT_EQ(ImageFolder(root(), Part::train, {.checksums = Checksums::ignore}).size(), 3);
  EXPECT_EQ(open(Part::test).size(), 2);
  const auto difference =
      compare(ChecksumManifest::read(root()), ChecksumManifest::compute(root()));
  EXPECT_EQ(difference.missing, std::vector<std::string>{"train/a/2.png"});
  EXPECT_EQ(difference.extra, std::vector<std::string>{"train/a/3.png"});
  EXPECT_TRUE(difference.changed.empty());
  EXPECT_ERROR(ImageFolder(root() / "train", Part::train), "a/3.png is not listed");  // from above
}

TEST_F(Folder, an_altered_manifest_is_refused) {
  add("train/a/1.png");
  add("train/a/2.png");
  ChecksumManifest::compute(root()).write();
  const std::vector<uint8_t> bytes = read_file(root() / kChecksumFile, 1 << 20);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<uint8_t> changed = bytes;
    changed[at] ^= 1;
    test::write_file(root() / kChecksumFile, changed);
    EXPECT_ERROR(ChecksumManifest::read(root()), kChecksumFile);
    test::write_file(root() / kChecksumFile, std::span(bytes).first(at));
    EXPECT_ERROR(ChecksumManifest::read(root()), kChecksumFile);
  }
  ASSERT_EQ(::mkfifo((root() / "train/a/x").c_str(), 0600), 0);
  EXPECT_ERROR(ChecksumManifest::compute(root()), "train/a/x: got a FIFO");
  fs::remove(root() / "train/a/x");
  fs::create_directory_symlink(root(), root() / "train/loop");
  EXPECT_ERROR(ChecksumManifest::compute(root()), "a link leads back");
}

TEST_F(Folder, folders_that_do_not_fit_are_errors) {
  EXPECT_ERROR(ImageFolder(root() / "absent", Part::train), "absent: no such folder");
  EXPECT_ERROR(open(Part::train), "no class folders");
  fs::create_directories(root() / "a");
  EXPECT_ERROR(open(Part::train), "class folder without images");
  add("a/1.png");
  EXPECT_ERROR(open(Part::test), "too few images");
  add("train/a/1.png");
  EXPECT_ERROR(open(Part::train), "neither test nor val");
  add("test/a/1.png");
  add("test/b/1.png");
  EXPECT_ERROR(open(Part::test), "class b has no folder in");
  EXPECT_EQ(open(Part::train).size(), 1);
}

TEST_F(Folder, a_broken_file_names_its_path) {
  add("train/a/1.png");
  add("test/a/1.png");
  test::write_file(root() / "train/a/2.png", test::bytes_of("text with a picture's name"));
  const ImageFolder train = open(Part::train);
  EXPECT_ERROR(train.get(1), (root() / "train/a/2.png").native());
  EXPECT_ERROR(train.get(1), "not an image Binade reads");
}

TEST_F(Folder, open_dataset_finds_the_format) {
  EXPECT_ERROR(open_dataset(root()), "looked for");
  EXPECT_ERROR(open_dataset(root(), Format::idx), "train-images-idx3-ubyte");
  EXPECT_ERROR(open_dataset(root() / "absent"), "no such folder");
  add("train/a/1.png");
  add("test/a/1.png");
  const TrainTest both = open_dataset(root());
  EXPECT_EQ(both.format, Format::folder);
  EXPECT_EQ(both.train->size(), 1);
}

// Lists many files, in order and without opening any. With BINADE_LONG there are 10^6. The time is
// printed.
TEST_F(Folder, many_empty_files_are_listed) {
  const int64_t classes = 10, each = std::getenv("BINADE_LONG") != nullptr ? 100'000 : 500;
  for (int64_t c = 0; c < classes; ++c) {
    const std::string folder = (root() / "train" / text("class", c)).native();
    fs::create_directories(folder);
    fs::create_directories(root() / "test" / text("class", c));
    test::write_file(root() / "test" / text("class", c) / "0.jpg", {});
    for (int64_t i = 0; i < each; ++i) {
      const int file = ::open(text(folder, "/", i, ".jpg").c_str(), O_CREAT | O_WRONLY, 0644);
      ASSERT_GE(file, 0);
      ::close(file);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const ImageFolder images = open(Part::train);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%lld files: listed in %.3f s\n", static_cast<long long>(classes * each),
              seconds.count());
  ASSERT_EQ(images.size(), classes * each);
  EXPECT_EQ(images.label(0), 0);
  EXPECT_EQ(images.label(images.size() - 1), classes - 1);
  EXPECT_TRUE(images.describe(1).ends_with("class0/1.jpg"));
  EXPECT_TRUE(images.describe(2).ends_with("class0/10.jpg"));
  EXPECT_ERROR(images.get(each), "class1/0.jpg: the file is empty");
}

TEST(SharedFolder, cifar_and_photos) {
  const fs::path shared = test::shared_folder();
  if (shared.empty()) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  const TrainTest cifar = open_dataset(shared / "data/cifar10/images");
  EXPECT_EQ(cifar.train->size(), 5000);
  EXPECT_EQ(cifar.test->size(), 1000);
  EXPECT_EQ(cifar.train->class_names()[3], "cat");
  EXPECT_TRUE(compute_mean_std(*cifar.test).one_size());
  const ImageFolder photos(shared / "data/photos/raccoon_kangaroo", Part::train,
                           {.decode = {.channels = 3, .target_side = 64}});
  const DatasetStatistics statistics = compute_mean_std(photos, true);
  EXPECT_LE(statistics.bad_files, 3);
  EXPECT_GE(statistics.min_height, 64);
}

}  // namespace
}  // namespace binade::data::image_folder_test
