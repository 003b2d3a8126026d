#include <binade/data/glyphs.h>
#include <binade/data/image_folder.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/data/test_files.h"

namespace binade::data::glyphs_test {
namespace {

namespace fs = std::filesystem;

constexpr GlyphOptions kSmall{.seed = 3, .classes = 10, .train = 60, .test = 20, .size = 32};

TEST(Glyphs, folder_is_complete_and_readable) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(make_glyph_folder(folder.path() / "glyphs", kSmall));
  const TrainTest data = open_dataset(folder.path() / "glyphs");
  EXPECT_EQ(data.train->size(), 60);
  EXPECT_EQ(data.test->size(), 20);
  EXPECT_EQ(data.train->class_count(), 10);
  EXPECT_EQ(data.train->class_names()[4], "4");
  const DatasetStatistics statistics = compute_mean_std(*data.train);
  EXPECT_TRUE(statistics.one_size());
  EXPECT_EQ(statistics.min_height, 32);
  std::set<std::string> extensions;
  for (int64_t i = 0; i < data.train->size(); ++i) {
    extensions.insert(fs::path(data.train->describe(i)).extension());
  }
  EXPECT_EQ(extensions.size(), has_libjpeg() ? 2u : 1u);
}

TEST(Glyphs, png_files_hold_the_drawn_pixels) {
  const test::TemporaryFolder folder;
  make_glyph_folder(folder.path() / "glyphs", kSmall);
  const Image third = draw_glyph(7, kSmall, 0, 27);  // the third picture of class 7
  EXPECT_EQ(read_image(folder.path() / "glyphs/train/7/00002.png"), third);
  EXPECT_NE(draw_glyph(7, kSmall, 1, 27), third);
  EXPECT_EQ(draw_glyph(7, kSmall, 0, 27), third);
}

TEST(Glyphs, pixels_never_change) {
  // A hash over many pictures: drawing uses no function that differs between machines.
  uint64_t hash = 0xCBF29CE484222325;
  GlyphOptions options;
  options.classes = 20;
  options.train = options.test = 20;
  for (int number = 0; number < 40; ++number) {
    for (uint8_t value : draw_glyph(number % 20, options, 0, number).pixels) {
      hash = (hash ^ value) * 0x100000001B3;
    }
  }
  EXPECT_EQ(hash, 0x9F7F2AB6EFD34145u);
}

TEST(Glyphs, an_existing_folder_is_reused_or_refused) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "glyphs";
  EXPECT_TRUE(make_glyph_folder(path, kSmall));
  const auto time = fs::last_write_time(path / "train/0/00000.png");
  EXPECT_FALSE(make_glyph_folder(path, kSmall));
  EXPECT_FALSE(make_glyph_folder(path.native() + "/", kSmall));
  EXPECT_EQ(fs::last_write_time(path / "train/0/00000.png"), time);
  GlyphOptions other = kSmall;
  other.seed = 4;
  EXPECT_ERROR(make_glyph_folder(path, other), "other options");
  test::write_file(folder.path() / "mine/letter.txt", test::bytes_of("keep"));
  EXPECT_ERROR(make_glyph_folder(folder.path() / "mine", kSmall), "not empty");
  EXPECT_TRUE(fs::exists(folder.path() / "mine/letter.txt"));
  fs::create_directory(folder.path() / "empty");
  EXPECT_TRUE(make_glyph_folder(folder.path() / "empty", kSmall));
}

TEST(Glyphs, nothing_is_left_when_it_cannot_be_written) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "file", test::bytes_of("x"));
  EXPECT_ERROR(make_glyph_folder(folder.path() / "file/glyphs", kSmall), "glyphs: cannot write");
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "file");
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

// Two processes draw the same folder; one is killed, and the next start removes its part.
TEST(Glyphs, several_processes_may_make_it_at_once) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "glyphs";
  const auto leftovers = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename() != "glyphs") {
        found.push_back(entry.path());
      }
    }
    return found;
  };
  GlyphOptions large = kSmall;
  large.train = 200'000;  // not finished when the process is killed
  const pid_t killed = ::fork();
  if (killed == 0) {
    make_glyph_folder(path, large);
    ::_exit(0);
  }
  while (leftovers().empty() || !fs::exists(leftovers()[0] / "train")) {
    ::usleep(1000);
  }
  EXPECT_TRUE(make_glyph_folder(path, kSmall));
  EXPECT_EQ(leftovers().size(), 1u) << "its process lives";
  ::kill(killed, SIGKILL);
  ::waitpid(killed, nullptr, 0);
  fs::remove_all(path);
  // Foreign folders with names like those of old versions: a folder, and a link to it.
  const fs::path foreign = folder.path() / "glyphs.0123456789abcdef.tmp";
  test::write_file(foreign / "letter.txt", test::bytes_of("keep"));
  fs::create_directory_symlink(foreign, folder.path() / "glyphs.0123456789abcde0.tmp");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      bool good = true;
      try {
        make_glyph_folder(path, kSmall);
      } catch (const std::exception&) {
        good = false;
      }
      ::_exit(good && read_image(path / "train/7/00002.png") == draw_glyph(7, kSmall, 0, 27) ? 0
                                                                                             : 1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(leftovers().size(), 2u);
  EXPECT_TRUE(fs::exists(foreign / "letter.txt"));
}

TEST(Glyphs, bad_options_are_errors) {
  EXPECT_ERROR(make_glyph_folder("/tmp/x", {.classes = 9}), "9 classes");
  EXPECT_ERROR(make_glyph_folder("/tmp/x", {.train = 3}), "3 training");
  EXPECT_ERROR(make_glyph_folder("/tmp/x", {.size = 8}), "size 8");
  EXPECT_ERROR(draw_glyph(10, {}, 0, 0), "label 10");
}

}  // namespace
}  // namespace binade::data::glyphs_test
