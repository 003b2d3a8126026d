#include <binade/data/text_lines.h>
#include <sys/stat.h>
#include <tests/support/temporary_directory.h>

#include <fstream>

#include "tests/data/row_stream.h"
#include "tests/data/test_files.h"

namespace binade::data::text_lines_test {
namespace {

using test::read_rows;
using test::RowStream;

class TextLinesFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& contents) const {
    std::ofstream(directory / name, std::ios::binary) << contents;
    return directory / name;
  }
  testing::TemporaryDirectory directory;
};

TEST_F(TextLinesFiles, AreReadLineByLine) {
  const TextLines rows({write("a.csv", "class,x,y\r\n3,1.5,-2\r\n\r\n0,7,1e3"),
                        write("empty.csv", ""), write("b.csv", "class,x,y\n9,0.25,4\n")},
                       csv_sample, {.header_lines = 1});
  EXPECT_EQ(rows.size(), -1);
  for (const int workers : {0, 2}) {
    Loader loader(rows, {.batch = 2, .workers = workers, .shuffle = false});
    const RowStream stream = read_rows(loader, 0);
    EXPECT_EQ(stream.labels, (std::vector<int64_t>{3, 0, 9}));
    EXPECT_EQ(stream.values, (std::vector<float>{1.5f, -2, 7, 1000, 0.25f, 4}));
    EXPECT_EQ(loader.batches_per_epoch(), 2);  // now it is known
  }
  const TextLines same({write("c.csv", "3,1.5,-2\n0,7,1e3\n9,0.25,4")}, csv_sample);
  EXPECT_EQ(same.identity(), DataIdentity());  // unknown until it is read
  EXPECT_EQ(same.count_rows(), 3);
  EXPECT_EQ(same.identity(), rows.identity());
  const TextLines other({write("d.csv", "3,1.5,-2\n0,7,1e3\n8,0.25,4")}, csv_sample);
  other.count_rows();
  EXPECT_NE(difference(other.identity(), rows.identity()), "");
  EXPECT_EQ(rows.describe(0), directory / "a.csv:2");
  EXPECT_EQ(rows.describe(1), directory / "a.csv:4");
  EXPECT_EQ(rows.describe(2), directory / "b.csv:2");
}

TEST_F(TextLinesFiles, LongLinesAndManyOfThem) {
  std::string contents;
  for (int i = 0; i < 3000; ++i) {
    contents += text(i % 10, ",", i, i % 700 == 0 ? std::string(70000, '0') : "", "e0\n");
  }
  contents += "1";
  const TextLines rows({write("long.csv", contents)}, [](std::string_view line) {
    return Sample{{}, 0, {static_cast<float>(line.size())}};
  });
  EXPECT_EQ(rows.count_rows(), 3001);
  Loader loader(rows, {.batch = 100, .workers = 2, .shuffle = false});
  const RowStream stream = read_rows(loader, 0);
  ASSERT_EQ(stream.values.size(), 3001u);
  EXPECT_EQ(stream.values[700], 2 + 3 + 70000 + 2);
  EXPECT_EQ(stream.values[2999], 2 + 4 + 2);
  EXPECT_EQ(stream.values[3000], 1);
}

TEST_F(TextLinesFiles, NameWhatIsWrong) {
  const std::string good = write("good.csv", "1,2\n"), bad = write("bad.csv", "1,2\n3,4x\n");
  const std::string fifo = directory / "fifo.csv";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto error_of = [](const TextLines& rows, int workers) {
    Loader loader(rows, {.batch = 1, .workers = workers, .shuffle = false});
    try {
      read_rows(loader, 0);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  for (const int workers : {0, 2}) {
    EXPECT_EQ(error_of(TextLines({good, bad}, csv_sample), workers),
              text("loader: sample 2 (", bad, ":2): csv: got '4x' in column 2, expected a number"));
    EXPECT_EQ(error_of(TextLines({good, directory / "none.csv"}, csv_sample), workers),
              text(directory / "none.csv",
                   ": cannot open the file: No such file or directory (a file of text lines)"));
    EXPECT_TRUE(test::contains(error_of(TextLines({directory.path()}, csv_sample), workers),
                               "it is a directory, not a regular file"));
    EXPECT_TRUE(test::contains(error_of(TextLines({fifo}, csv_sample), workers),
                               "it is a FIFO, not a regular file"));
  }
  EXPECT_ERROR(csv_sample("-1,2"), "'-1' in column 1, expected a class");
  EXPECT_ERROR(csv_sample("1,,2"), "got '' in column 2");
  EXPECT_ERROR(csv_sample("1"), "a class without values");
  EXPECT_ERROR(TextLines({good}, nullptr), "no function");
}

// The manifest is compared in one pass: the size at once, the bytes before the last block.
TEST_F(TextLinesFiles, AreComparedWithTheirChecksums) {
  std::string contents;
  for (int i = 0; i < 20'000; ++i) {
    contents += text("1,", i, "\n");
  }
  const std::string file = write("a.csv", contents);
  ChecksumManifest::compute(directory.path()).write();
  const auto read_all = [&](Checksums mode) {
    return TextLines({file}, csv_sample, {.checksums = mode}).count_rows();
  };
  EXPECT_EQ(read_all(Checksums::require), 20'000);
  contents[70'000] ^= 1;  // in the second block
  write("a.csv", contents);
  EXPECT_ERROR(read_all(Checksums::if_present), file + ": the file has the checksum");
  EXPECT_EQ(read_all(Checksums::ignore), 20'000);
  write("a.csv", contents + "1,2\n");
  EXPECT_ERROR(read_all(Checksums::if_present), "binade-checksums.txt says ");
  write("other.csv", "1,2\n");
  EXPECT_ERROR(TextLines({directory / "other.csv"}, csv_sample).count_rows(), "not listed in");
}

}  // namespace
}  // namespace binade::data::text_lines_test
