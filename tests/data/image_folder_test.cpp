#include <binade/data/encode.h>
#include <binade/data/identity.h>
#include <binade/data/image_folder.h>

#include <set>

#include "tests/data/test_files.h"

namespace binade::data {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void add(const std::string& name, int side = 4) {
    test::write_file(root() / name, encode_png(test::picture(side, side, 3, name.size())));
  }
  const fs::path& root() const { return folder_.path(); }
  ImageFolder open(Part part) const { return ImageFolder(root(), part); }

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
}  // namespace binade::data
