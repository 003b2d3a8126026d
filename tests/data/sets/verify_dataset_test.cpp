// Tests the report on a data folder: bad files, duplicates, classes, sizes, statistics.
#include <binade/data/pictures/pictures.h>
#include <binade/data/sets/verify_dataset.h>

#include <nlohmann/json.hpp>

#include "tests/data/test_files.h"

namespace binade::data::verify_dataset_test {
namespace {

using test::contains;
using test::picture;

class VerifyDataset : public ::testing::Test {
 protected:
  void save(const std::string& name, const Image& image) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    save_png(path.native(), image);
  }
  void SetUp() override {
    save("train/cat/1.png", picture(8, 6, 3, 1));
    save("train/cat/2.png", picture(8, 6, 3, 2));
    save("train/dog/1.png", picture(9, 6, 3, 3));
    save("test/cat/1.png", picture(8, 6, 3, 4));
    save("test/dog/1.png", picture(8, 6, 3, 5));
  }
  DatasetReport verify() const { return verify_dataset(folder_.path().native()); }

  test::TemporaryFolder folder_;
};

TEST_F(VerifyDataset, a_clean_folder) {
  const DatasetReport report = verify();
  EXPECT_TRUE(report.is_clean());
  ASSERT_EQ(report.parts.size(), 2u);
  EXPECT_EQ(report.parts[0].samples, 3);
  EXPECT_EQ(report.parts[0].classes,
            (std::vector<std::pair<std::string, int64_t>>{{"cat", 2}, {"dog", 1}}));
  EXPECT_EQ(report.sizes.at({8, 6}), 4);
  EXPECT_EQ(report.sizes.at({9, 6}), 1);
  const DatasetStatistics expected =
      compute_mean_std(ImageFolder(folder_.path().native(), Part::train));
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(report.mean[c], expected.mean[c], 1e-6);
    EXPECT_NEAR(report.deviation[c], expected.deviation[c], 1e-6);
  }
}

TEST_F(VerifyDataset, finds_bad_files_and_pictures_in_both_parts) {
  save("test/cat/copy.png", picture(8, 6, 3, 1));   // equal to train/cat/1
  save("train/dog/same.png", picture(8, 6, 3, 2));  // equal to train/cat/2, with another label
  test::write_file(folder_.path() / "train/dog/bad.png", test::bytes_of("no image"));
  test::write_file(folder_.path() / "train/dog/notes.txt", test::bytes_of("text"));
  const DatasetReport report = verify();
  EXPECT_FALSE(report.is_clean());
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_TRUE(contains(report.bad[0].name, "bad.png"));
  ASSERT_EQ(report.duplicates.size(), 2u);
  EXPECT_TRUE(report.duplicates[0].across_parts);
  EXPECT_FALSE(report.duplicates[0].has_several_labels);
  EXPECT_FALSE(report.duplicates[1].across_parts);
  EXPECT_TRUE(report.duplicates[1].has_several_labels);
  EXPECT_EQ(report.leaks(), 1);
  EXPECT_EQ(report.ignored_files, 1);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["bad"].size(), 1u);
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["parts"][0]["classes"][1]["samples"], 3);
  EXPECT_TRUE(contains(to_string(report), "1 of them in train and test"));
}

TEST_F(VerifyDataset, progress_ends_with_all) {
  int64_t last = 0;
  verify_dataset(folder_.path().native(), {.on_progress = [&](int64_t done, int64_t total) {
                   EXPECT_GT(done, last);
                   EXPECT_EQ(total, 5);
                   last = done;
                 }});
  EXPECT_EQ(last, 5);
  EXPECT_ERROR(verify_dataset(folder_.path().native() + "/none"), "none");
}

}  // namespace
}  // namespace binade::data::verify_dataset_test
