// What a reader sees with a cache of listings is what it sees without one.
#include <binade/data/listing/listing_cache_internal.h>
#include <binade/data/sets/image_table.h>

#include <cmath>
#include <functional>

#include "tests/data/listing/listings.h"

namespace binade::data::listing_cache_test {
namespace {

namespace fs = std::filesystem;
using test::Listings;
using test::SeenFolder;
using test::warnings_of;

TEST_F(Listings, a_warm_start_reads_the_file_and_sees_the_same) {
  const SeenFolder seen = expect_same();
  EXPECT_EQ(seen.files.size(), 6u);
  EXPECT_EQ(seen.warnings.size(), 3u);
  EXPECT_EQ(kept(), (std::vector<std::string>{"train", "train/bird", "train/cat", "train/dog"}));
  const auto written = bytes();
  EXPECT_EQ(expect_same(), seen);
  EXPECT_EQ(bytes(), written);
  plant("10.jpg", "12.jpg");
  EXPECT_TRUE(sees("dog/12.jpg"));
  EXPECT_FALSE(sees("dog/10.jpg"));
  const auto other = see(true, Part::test);
  EXPECT_EQ(other, see(false, Part::test));
  EXPECT_EQ(kept().size(), 6u);  // of both parts
  EXPECT_TRUE(sees("dog/12.jpg"));
}

TEST_F(Listings, a_change_in_a_folder_is_seen) {
  const std::vector<std::function<void()>> changes = {
      [&] { add("train/dog/5.jpg"); },
      [&] { fs::remove(root() / "train/dog/5.jpg"); },
      [&] { fs::rename(root() / "train/dog/1.jpg", root() / "train/dog/7.jpg"); },
      [&] { fs::rename(root() / "train/dog/7.jpg", root() / "train/cat/7.jpg"); },
      [&] {
        fs::remove(root() / "train/dog/10.jpg");
        fs::create_directory(root() / "train/dog/10.jpg");
      },
      [&] { add("train/dog/1.jpg"); },
      [&] { add("train/ant/1.jpg"); },
      [&] { fs::rename(root() / "train/ant", root() / "train/zebra"); },
      [&] { fs::remove_all(root() / "train/zebra"); },
      [&] { fs::create_directory(root() / "train/empty"); },
      [&] { fs::remove(root() / "train/empty"); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    const SeenFolder before = expect_same();
    changes[i]();
    const SeenFolder after = expect_same();  // not settled: listed anew
    EXPECT_NE(after, before);
    settle();
    EXPECT_EQ(expect_same(), after);
    EXPECT_EQ(expect_same(), after);
  }
}

TEST_F(Listings, a_change_with_the_old_time_is_seen) {
  const fs::path dog = root() / "train/dog";
  const auto time = fs::last_write_time(dog);
  expect_same();
  plant("10.jpg", "12.jpg");
  ASSERT_TRUE(sees("dog/12.jpg"));
  fs::rename(dog / "10.jpg", dog / "11.jpg");
  fs::last_write_time(dog, time);
  EXPECT_TRUE(test::contains(expect_same().files.back(), "dog/11.jpg"));
}

TEST_F(Listings, another_folder_in_the_place_is_seen) {
  expect_same();
  fs::create_directory(root() / "other");
  fs::copy_file(root() / "train/dog/1.jpg", root() / "other/3.jpg");
  fs::rename(root() / "train/dog", root() / "old");
  fs::rename(root() / "other", root() / "train/dog");
  EXPECT_TRUE(test::contains(expect_same().files.back(), "dog/3.jpg"));
}

TEST_F(Listings, links_are_looked_at_in_every_run) {
  expect_same();
  settle();
  const fs::path link = root() / "train/cat/link.jpg";
  const SeenFolder before = expect_same();
  fs::remove(folder_.path() / "elsewhere/1.jpg");  // the target of a class folder
  add("../elsewhere/2.jpg");
  add("train/dog/nowhere");  // the target of a link to nothing; a change of its folder
  EXPECT_NE(expect_same(), before);
  // A change of a target changes no folder that has links to it.
  fs::create_symlink(folder_.path() / "target.jpg", root() / "train/cat/far.jpg");
  settle();
  const SeenFolder nothing = expect_same();
  EXPECT_EQ(nothing.ignored, before.ignored + 1);
  test::write_file(folder_.path() / "target.jpg", test::bytes_of("x"));
  const SeenFolder file = expect_same();
  EXPECT_EQ(file.ignored, before.ignored);
  EXPECT_EQ(file.files.size(), nothing.files.size() + 1);
  EXPECT_TRUE(test::contains(expect_same(OutsideLinks::refuse).error, "bird: the link leads to"));
  fs::remove(root() / "train/bird");
  settle();
  EXPECT_TRUE(test::contains(expect_same(OutsideLinks::refuse).error, "far.jpg: the link leads"));
  EXPECT_TRUE(test::contains(expect_same(OutsideLinks::refuse).error, "far.jpg: the link leads"));
  fs::remove(root() / "train/cat/far.jpg");
  fs::remove(link);
  fs::create_symlink("2.jpg", link);
  settle();
  EXPECT_EQ(expect_same(OutsideLinks::refuse).error, "none");
}

TEST_F(Listings, folders_that_changed_just_now_are_not_kept) {
  const ListingCacheOptions slow{cache(), 3600};
  const auto open = [&](const ListingCacheOptions& options) {
    ImageFolder(root(), Part::train, {.checksums = Checksums::ignore, .listing_cache = options});
  };
  warnings_of([&] { open(slow); });
  EXPECT_FALSE(fs::exists(cache()));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  const auto time = fs::last_write_time(root() / "train/dog");
  add("train/dog/2.jpg");                           // the others are settled
  fs::last_write_time(root() / "train/dog", time);  // so is this one by its first time
  warnings_of([&] { open({cache(), 0.9}); });
  EXPECT_EQ(kept(), (std::vector<std::string>{"train", "train/bird", "train/cat"}));
  EXPECT_ERROR(open({cache(), -1}), "got settled_seconds -1");
  EXPECT_ERROR(open({cache(), std::nan("")}), "got settled_seconds nan");
}

TEST_F(Listings, a_time_in_the_future_is_never_settled) {
  fs::last_write_time(root() / "train/dog",
                      fs::file_time_type::clock::now() + std::chrono::hours(24));
  settle();
  expect_same();
  EXPECT_EQ(kept(), (std::vector<std::string>{"train", "train/bird", "train/cat"}));
}

TEST_F(Listings, parts_and_data_sets_share_a_file) {
  fs::remove_all(root() / "test");
  fs::rename(root() / "train", folder_.path() / "flat");
  for (int i = 0; i < 40; ++i) {
    test::write_file(folder_.path() / "flat/cat" / text(i, ".png"), test::bytes_of("x"));
  }
  settle();
  const auto names_of = [&](const ListingCacheOptions& options) {
    std::vector<std::string> names;
    warnings_of([&] {
      const TrainTest both =
          open_dataset(folder_.path() / "flat", Format::folder, {.listing_cache = options});
      for (const auto& part : {both.train, both.test}) {
        for (int64_t i = 0; i < part->size(); ++i) {
          names.push_back(part->describe(i));
        }
      }
      const ImageTable table(
          {.folder = (folder_.path() / "elsewhere").native(), .listing_cache = options});
      names.push_back(table.describe(0));
    });
    return names;
  };
  const auto plain = names_of({});
  EXPECT_EQ(plain.size(), 47u);
  EXPECT_EQ(names_of({cache(), kSettled}), plain);
  const auto written = bytes();
  EXPECT_EQ(ListingFile(cache()).folders().size(), 5u);
  EXPECT_EQ(names_of({cache(), kSettled}), plain);
  EXPECT_EQ(bytes(), written);
  fs::remove_all(folder_.path() / "flat/dog");  // its folder is dropped when the file is written
  settle();
  names_of({cache(), kSettled});
  EXPECT_EQ(ListingFile(cache()).folders().size(), 4u);
}

// A folder of any kind of file system: the names are right, and the cache is not used.
TEST_F(Listings, file_systems_without_times_are_listed_anew) {
  DirectoryStamp stamp;
  ASSERT_EQ(file_system().stamp("/proc/sys/kernel", stamp), 0);
  settle();
  ListingCache listings({cache(), kSettled});
  std::vector<DirectoryEntry> entries;
  const auto seen = warnings_of([&] {
    entries = listings.list("/proc/sys/kernel");
    entries = listings.list("/proc/sys/kernel");
    listings.save();
  });
  EXPECT_EQ(entries.size(), list_directory("/proc/sys/kernel").size());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(test::contains(seen[0], "the listing cache is not used for /proc/sys/kernel"));
  EXPECT_FALSE(fs::exists(cache()));
}

}  // namespace
}  // namespace binade::data::listing_cache_test
