// Tests TokenWindows: positions, files, and files that do not fit or that shrink.
#include <binade/core/tensor/create.h>
#include <binade/data/loader.h>
#include <binade/data/sets/token_windows.h>

#include <filesystem>

#include "tests/data/test_files.h"

namespace binade::data::token_windows_test {
namespace {

class TokenFiles : public ::testing::Test {
 protected:
  // Writes ids as little-endian numbers of `width` bytes.
  std::string write(const std::string& name, const std::vector<int64_t>& ids, int width,
                    size_t header = 0) {
    std::vector<uint8_t> bytes(header, 0xEE);
    for (const int64_t id : ids) {
      for (int b = 0; b < width; ++b) {
        bytes.push_back(static_cast<uint8_t>(id >> (8 * b)));
      }
    }
    test::write_file(folder_.path() / name, bytes);
    return (folder_.path() / name).native();
  }
  test::TemporaryFolder folder_;
};

std::vector<int64_t> range(int64_t from, int64_t to) {
  std::vector<int64_t> ids;
  for (int64_t i = from; i < to; ++i) {
    ids.push_back(i);
  }
  return ids;
}

std::vector<int64_t> field(const Dataset& set, int64_t index, const char* name) {
  return set.get(index)[name].to_vector<int64_t>();
}

TEST(TokenWindows, tokens_and_targets_are_one_apart) {
  const TokenWindows windows(range(100, 121), {.context = 5});  // 21 ids
  EXPECT_EQ(windows.size(), 4);
  EXPECT_EQ(windows.tokens(), 21);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(field(windows, i, "tokens"), range(100 + 5 * i, 105 + 5 * i));
    EXPECT_EQ(field(windows, i, "targets"), range(101 + 5 * i, 106 + 5 * i));
  }
  EXPECT_EQ(TokenWindows(range(0, 20), {.context = 5}).size(), 3);
  EXPECT_EQ(TokenWindows(range(0, 20), {.context = 5, .stride = 1}).size(), 15);
  EXPECT_EQ(TokenWindows(range(0, 6), {.context = 5}).size(), 1);
  const TokenWindows sparse(range(0, 30), {.context = 3, .stride = 10});
  EXPECT_EQ(sparse.size(), 3);
  EXPECT_EQ(field(sparse, 2, "targets"), range(21, 24));
  EXPECT_ERROR(windows.get(4), "index 4, expected one of 4");
  EXPECT_ERROR(windows.get(-1), "index -1");
}

TEST(TokenWindows, of_all_integers) {
  const std::vector<uint16_t> small = {1, 2, 65535};
  EXPECT_EQ(field(TokenWindows(small, {.context = 2}), 0, "targets"),
            (std::vector<int64_t>{2, 65535}));
  const std::vector<uint32_t> large = {1, 4294967295u};
  EXPECT_EQ(field(TokenWindows(large, {.context = 1}), 0, "targets")[0], 4294967295);
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
    EXPECT_EQ(field(TokenWindows(arange(10, dtype), {.context = 9}), 0, "targets"), range(1, 10));
  }
  EXPECT_ERROR(TokenWindows(arange(10, DType::f32), {.context = 2}), "got f32 [10]");
  EXPECT_ERROR(TokenWindows(arange(10).reshape({2, 5}), {.context = 2}), "got i64 [2, 5]");
  EXPECT_ERROR(TokenWindows(Tensor(), {.context = 2}), "an undefined tensor");
  EXPECT_ERROR(TokenWindows(std::vector<int>{1, -2}, {.context = 1}), "id -2 at position 1");
}

TEST(TokenWindows, bad_options_are_errors) {
  const std::vector<int64_t> ids = range(0, 20);
  EXPECT_ERROR(TokenWindows(ids, {}), "context 0, expected at least 1");
  EXPECT_ERROR(TokenWindows(ids, {.context = 20}), "got 20 ids, expected at least 21");
  EXPECT_ERROR(TokenWindows(ids, {.context = 2, .stride = -1}), "stride -1");
  EXPECT_ERROR(TokenWindows(std::vector<std::string>{}, {.context = 2}), "no files");
  const TokenWindows checked(ids, {.context = 4, .vocabulary = 10});
  EXPECT_EQ(field(checked, 1, "tokens"), range(4, 8));
  EXPECT_ERROR(checked.get(2),
               "ids: got id 10 at token 10, expected less than the vocabulary of 10");
}

TEST_F(TokenFiles, of_both_widths_and_with_headers) {
  const std::vector<int64_t> ids = {7, 300, 65535, 1, 2};
  const TokenWindows narrow(write("n.bin", ids, 2), {.context = 4});
  EXPECT_EQ(field(narrow, 0, "tokens"), (std::vector<int64_t>{7, 300, 65535, 1}));
  EXPECT_EQ(field(narrow, 0, "targets"), (std::vector<int64_t>{300, 65535, 1, 2}));
  const std::vector<int64_t> wide = {70000, 4294967295, 5};
  const TokenWindows file(write("w.bin", wide, 4, 12),
                          {.context = 2, .dtype = TokenType::u32, .header_bytes = 12});
  EXPECT_EQ(field(file, 0, "tokens"), (std::vector<int64_t>{70000, 4294967295}));
  EXPECT_EQ(file.describe(0), (folder_.path() / "w.bin").native() + ": tokens 0 to 2");
}

TEST_F(TokenFiles, windows_stay_in_their_file) {
  const TokenWindows both({write("a.bin", range(0, 8), 2), write("b.bin", range(50, 61), 2)},
                          {.context = 3});
  EXPECT_EQ(both.size(), 2 + 3);
  EXPECT_EQ(field(both, 1, "targets"), range(4, 7));
  EXPECT_EQ(field(both, 2, "tokens"), range(50, 53));
  EXPECT_EQ(field(both, 4, "targets"), range(57, 60));
}

TEST_F(TokenFiles, that_do_not_fit_are_errors) {
  EXPECT_ERROR(TokenWindows(folder_.path() / "none.bin", {.context = 2}), "none.bin");
  EXPECT_ERROR(TokenWindows(write("odd.bin", range(0, 9), 1), {.context = 2}), "got 9 bytes");
  EXPECT_ERROR(
      TokenWindows(write("w.bin", range(0, 9), 2), {.context = 2, .dtype = TokenType::u32}),
      "is it another TokenType?");
  EXPECT_ERROR(TokenWindows(write("s.bin", {}, 2), {.context = 2}),
               "got 0 ids, expected at least 3");
  EXPECT_ERROR(TokenWindows(write("h.bin", {1}, 2), {.context = 1, .header_bytes = 8}),
               "a header of 8");
  EXPECT_ERROR(TokenWindows(folder_.path().native(), {.context = 1}), folder_.path().native());
}

TEST_F(TokenFiles, that_shrink_are_errors) {
  const std::string path = write("a.bin", range(0, 100), 2);
  const TokenWindows windows(path, {.context = 9});
  EXPECT_EQ(windows.get(9)["tokens"].at(0), 81);
  std::filesystem::resize_file(path, 60);
  EXPECT_EQ(windows.get(0)["tokens"].at(0), 0);
  EXPECT_ERROR(windows.get(9), path);
  for (const int workers : {0, 2}) {
    Loader loader(windows, {.batch = 2, .workers = workers, .shuffle = false});
    EXPECT_ERROR(
        {
          for (auto& batch : loader) {
            EXPECT_LT(batch.first, 4);
          }
        },
        "a.bin");
  }
}

TEST_F(TokenFiles, have_an_identity) {
  const TokenWindowsOptions options{.context = 7, .stride = 3};
  const auto identity = [&](const std::vector<int64_t>& ids) {
    return identify(TokenWindows(write("a.bin", ids, 2), options));
  };
  const std::vector<int64_t> ids = range(0, 50);
  const DataIdentity before = identity(ids);
  EXPECT_EQ(identity(ids), before);
  EXPECT_EQ(identify(TokenWindows(ids, options)), before);  // in memory or not
  for (const size_t changed : {0, 6, 7, 20, 49}) {
    std::vector<int64_t> other = ids;
    other[changed] = 999;
    EXPECT_EQ(difference(identity(other), before), "other samples") << changed;
  }
}

}  // namespace
}  // namespace binade::data::token_windows_test
