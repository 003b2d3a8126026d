// Caches of listings that are damaged, foreign, or written by several processes.
#include <binade/data/listing/listing_cache_internal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/data/listing/listings.h"

namespace binade::data::listing_damage_test {
namespace {

namespace fs = std::filesystem;
using test::Listings;
using test::SeenFolder;
using test::warnings_of;

class Damaged : public Listings {
 protected:
  // Reads a damaged file. The folder is seen as it is, with one warning that names the file. The
  // file is written anew, unless it no longer begins like a listing.
  void expect_one_warning(const std::vector<uint8_t>& damaged, bool is_foreign = false) {
    test::write_file(cache(), damaged);
    ListingCache listings({cache(), kSettled});
    const auto warnings = warnings_of([&] {
      for (const char* folder : {"train", "train/bird", "train/cat", "train/dog"}) {
        EXPECT_EQ(pack_entries(listings.list(root() / folder)),
                  pack_entries(list_directory(root() / folder)));
      }
    });
    expect_one(warnings);
    if (count_++ % kWritten == 0) {  // a write waits for the disk
      SeenFolder seen = see(true);
      ASSERT_EQ(seen.warnings.size(), plain_.warnings.size() + 1);
      expect_one({seen.warnings.front()});
      seen.warnings.erase(seen.warnings.begin());
      EXPECT_EQ(seen, plain_);
      EXPECT_EQ(bytes(), is_foreign ? damaged : whole_);
    }
  }
  void expect_one(const std::vector<std::string>& warnings) {
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(test::contains(warnings[0], cache().native())) << warnings[0];
    EXPECT_EQ(warnings[0].find('\n'), std::string::npos);
  }

  static constexpr int kWritten = 37;
  const SeenFolder plain_ = expect_same();
  const std::vector<uint8_t> whole_ = bytes();
  int count_ = 0;
};

TEST_F(Damaged, a_changed_byte_is_one_warning) {
  for (size_t at = 0; at < whole_.size(); ++at) {
    SCOPED_TRACE(at);
    std::vector<uint8_t> damaged = whole_;
    damaged[at] ^= static_cast<uint8_t>(1u << at % 8);
    expect_one_warning(damaged, at < std::string_view("binade-listing ").size());
  }
}

TEST_F(Damaged, a_file_that_is_cut_off_or_longer_is_one_warning) {
  for (size_t length = 0; length <= whole_.size(); ++length) {
    SCOPED_TRACE(length);
    std::vector<uint8_t> damaged = whole_;
    damaged.resize(length < whole_.size() ? length : length + 1);
    expect_one_warning(damaged);
  }
}

TEST_F(Damaged, several_folders_are_one_warning) {
  std::vector<uint8_t> damaged = whole_;
  const ListingFile file(cache());
  for (const ListedFolder& folder : file.folders()) {
    damaged[folder.offset] ^= 1;
  }
  expect_one_warning(damaged);
}

TEST_F(Listings, another_version_is_replaced) {
  const SeenFolder plain = expect_same();
  const std::vector<uint8_t> whole = bytes();
  std::vector<uint8_t> old = whole;
  old[15] = '0';
  test::write_file(cache(), old);
  const SeenFolder seen = see(true);
  ASSERT_EQ(seen.warnings.size(), plain.warnings.size() + 1);
  EXPECT_TRUE(test::contains(seen.warnings[0], "is of another version")) << seen.warnings[0];
  EXPECT_EQ(bytes(), whole);
}

TEST_F(Listings, names_that_lead_elsewhere_are_damage) {
  expect_same();
  plant("10.jpg", "../cat/2.jpg");
  const SeenFolder seen = see(true);
  EXPECT_TRUE(test::contains(seen.warnings[0], "one that no folder can have")) << seen.warnings[0];
  EXPECT_EQ(seen.files, see(false).files);
}

TEST_F(Listings, other_files_stay_as_they_are) {
  const auto expect_warning = [&](const char* part) {
    SeenFolder seen = see(true);
    ASSERT_FALSE(seen.warnings.empty());
    EXPECT_TRUE(test::contains(seen.warnings[0], part)) << seen.warnings[0];
    seen.warnings.erase(seen.warnings.begin());
    EXPECT_EQ(seen, see(false));
  };
  test::write_file(cache(), test::bytes_of("file,label\n1.jpg,0\n"));
  expect_warning("is no listing cache and stays as it is");
  EXPECT_EQ(bytes(), test::bytes_of("file,label\n1.jpg,0\n"));
  fs::remove(cache());
  fs::create_directory(cache());
  expect_warning("cannot open the file");
  EXPECT_TRUE(fs::is_directory(cache()));
  fs::remove(cache());
  ASSERT_EQ(::mkfifo(cache().c_str(), 0600), 0);
  expect_warning("it is a FIFO");
  fs::remove(cache());
  fs::create_symlink("target", cache());
  expect_warning("it is a link, which is not followed here");
  EXPECT_TRUE(fs::is_symlink(cache()));
  EXPECT_FALSE(fs::exists(folder_.path() / "target"));
}

TEST_F(Listings, a_place_that_cannot_be_written_is_one_warning) {
  for (const char* place : {"missing/x.listing", "data.txt/x.listing", "/proc/x.listing"}) {
    test::write_file(folder_.path() / "data.txt", test::bytes_of("x"));
    const std::string file = (folder_.path() / place).native();
    std::optional<ImageFolder> train;
    const auto seen = warnings_of([&] {
      train.emplace(root(), Part::train, ImageFolderOptions{.listing_cache = {file, kSettled}});
    });
    EXPECT_EQ(train->size(), 6);
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_TRUE(test::contains(seen[0], file)) << seen[0];
  }
  EXPECT_ERROR(ImageFolder(root(), Part::train,
                           {.listing_cache = {(root() / "train/x.listing").native(), kSettled}}),
               "the listing cache is inside of the folder");
  EXPECT_ERROR(open_dataset(root(), Format::folder,
                            {.listing_cache = {(root() / "x.listing").native(), kSettled}}),
               "the listing cache is inside of the folder");
}

// Processes that replace the file all the time. A reader finds a whole one, and nothing is left.
TEST_F(Listings, processes_write_at_once) {
  const SeenFolder plain = see(false);
  constexpr int kProcesses = 4, kRounds = 40;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool same = true;
      for (int round = 0; round < kRounds; ++round) {
        if (round % kProcesses == i) {
          fs::remove(cache());
        }
        same = same && see(true) == plain;
      }
      ::_exit(same ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(see(true), plain);
  EXPECT_EQ(kept().size(), 4u);
  EXPECT_EQ(names_beside(), (std::vector<std::string>{"data", "data.listing", "elsewhere"}));
}

}  // namespace
}  // namespace binade::data::listing_damage_test
