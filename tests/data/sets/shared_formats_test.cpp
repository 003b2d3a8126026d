// Tests formats of other programs: CIFAR's binary files, tar shards, idx labels of several bytes.
#include <binade/data/encode.h>
#include <binade/data/idx.h>
#include <binade/data/image_folder.h>
#include <binade/data/sets/cifar.h>
#include <binade/data/sets/tar_dataset.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>

#include "tests/data/test_files.h"

namespace binade::data::shared_formats_test {
namespace {

using test::picture;
using Bytes = std::vector<uint8_t>;

class Cifar : public ::testing::Test {
 protected:
  // Makes records, each with one of these label sequences in front.
  static Bytes records(const std::vector<Bytes>& labels) {
    Bytes file;
    for (size_t i = 0; i < labels.size(); ++i) {
      file.insert(file.end(), labels[i].begin(), labels[i].end());
      const Image image = picture(32, 32, 3, i);
      for (int c = 0; c < 3; ++c) {
        for (size_t p = 0; p < 1024; ++p) {
          file.push_back(image.pixels[p * 3 + static_cast<size_t>(c)]);
        }
      }
    }
    return file;
  }
  void write(const char* name, const Bytes& bytes) const {
    test::write_file(folder_.path() / name, bytes);
  }
  std::string path() const { return folder_.path(); }
  test::TemporaryFolder folder_;
};

TEST_F(Cifar, TenHasBatchesOfLabelsAndPlanes) {
  write("data_batch_1.bin", records({{3}, {0}}));
  write("data_batch_2.bin", records({{1}}));
  write("test_batch.bin", records({{6}}));
  const CifarDataset train(path(), Part::train), test(path(), Part::test);
  EXPECT_EQ(train.size(), 3);
  EXPECT_EQ(train.class_count(), 7);  // over both parts
  EXPECT_EQ(test.class_count(), 7);
  EXPECT_EQ(train.get(1).image, picture(32, 32, 3, 1));
  EXPECT_EQ(train.get(2).image, picture(32, 32, 3, 0));
  EXPECT_EQ(train.get(2).label, 1);
  EXPECT_TRUE(train.describe(2).ends_with("data_batch_2.bin:0"));
  EXPECT_EQ(open_dataset(path()).format, Format::cifar);
  write("batches.meta.txt", test::bytes_of("ant\nbee\r\ncat\n\n"));
  EXPECT_ERROR(CifarDataset(path(), Part::train), "label 3 of record 0, expected less than 3");
  write("batches.meta.txt", test::bytes_of("a\nb\nc\nd\ne\nf\ng\n\n"));
  EXPECT_EQ(CifarDataset(path(), Part::test).class_names().back(), "g");
  Bytes cut = records({{1}});
  cut.pop_back();
  write("data_batch_2.bin", cut);
  EXPECT_ERROR(CifarDataset(path(), Part::train), "data_batch_2.bin: has 3072 bytes");
}

TEST_F(Cifar, HundredHasTwoLabels) {
  write("train.bin", records({{1, 50}, {0, 99}}));
  write("test.bin", records({{1, 2}}));
  EXPECT_EQ(CifarDataset(path(), Part::train).get(1).label, 99);
  EXPECT_EQ(CifarDataset(path(), Part::train, CifarLabels::coarse).get(0).label, 1);
  EXPECT_EQ(CifarDataset(path(), Part::train).class_count(), 100);
  EXPECT_ERROR(CifarDataset(path() + "/absent", Part::train), "no files of CIFAR");
}

TEST(IdxLabels, HaveAnyNumberOfClasses) {
  const test::TemporaryFolder folder;
  const std::string images = folder.path() / "i", labels = folder.path() / "l";
  test::write_file(images, Bytes{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 9});
  test::write_file(labels, Bytes{0, 0, 12, 1, 0, 0, 0, 2, 0, 0, 1, 44, 0, 0, 0, 5});
  const IdxDataset set(images, labels);
  EXPECT_EQ(set.class_count(), 301);
  EXPECT_EQ(set.get(0).label, 300);
  EXPECT_EQ(set.label(1), 5);
  EXPECT_ERROR(IdxDataset(images, labels, 10), "label 300 at index 0, expected less than 10");
  test::write_file(labels, Bytes{0, 0, 11, 1, 0, 0, 0, 2, 1, 0, 0xff, 0xff});
  EXPECT_ERROR(IdxDataset(images, labels), "label -1 at index 1");
  test::write_file(labels, Bytes{0, 0, 11, 1, 0, 0, 0, 2, 1, 0, 0});
  EXPECT_ERROR(IdxDataset(images, labels), "truncated");
}

// Makes a member of a tar file with a POSIX header.
std::string member(const std::string& name, const std::string& bytes, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, std::min<size_t>(name.size(), 100), name.substr(0, 100));
  char digits[24];
  std::snprintf(digits, sizeof digits, "%011llo", static_cast<unsigned long long>(bytes.size()));
  header.replace(124, 11, digits);
  header[156] = type;
  header.replace(257, 6, std::string("ustar\0", 6));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

std::string png(uint64_t seed) {
  const Bytes bytes = encode_png(picture(6, 8, 3, seed));
  return {bytes.begin(), bytes.end()};
}

class Tar : public ::testing::Test {
 protected:
  std::string write(const std::string& text, const char* name = "a.tar") const {
    test::write_file(folder_.path() / name, test::bytes_of(text));
    return folder_.path() / name;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Tar, SamplesAreMembersOfOneKey) {
  write(member("README", "hello") + member("x/", "", '5') + member("x/1.cls", "3\n") +
        member("x/1.png", png(1)) + member("x/1.txt", "ab") + member("x/2.txt", "cde") +
        member("x/2.cls", "0") + member("x/2.PNG", png(2)) + kEnd);
  write(member("x/3.png", png(3)) + member("x/3.txt", ""), "b.tar");  // no label, and no end
  const TarDataset set(folder_.path(), {.fields = {"txt"}});
  ASSERT_EQ(set.size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(set.get(i).image, picture(6, 8, 3, static_cast<uint64_t>(i + 1)));
  }
  EXPECT_EQ(set.get(0).label, 3);
  EXPECT_EQ(set.label(1), 0);
  EXPECT_EQ(set.label(2), std::nullopt);
  EXPECT_EQ(set.class_count(), 4);
  EXPECT_EQ(set.get(1)["txt"].to_vector<uint8_t>(), (Bytes{'c', 'd', 'e'}));
  EXPECT_TRUE(set.describe(0).ends_with("a.tar: x/1.png"));
  EXPECT_NE(set.id(0), set.id(1));
  EXPECT_ERROR(TarDataset(folder_.path(), {.fields = {"json"}}).get(0), "no member 'json'");
  pack(set, folder_.path() / "store");
  EXPECT_EQ(StoreDataset(folder_.path() / "store").get(1).image, set.get(1).image);
}

TEST_F(Tar, LongNamesOfGnuAndPax) {
  const std::string key = std::string(150, 'k') + "/" + std::string(20, 'n');
  const std::string record = " path=" + key + "2.png\n";
  const std::string pax = std::to_string(record.size() + 3) + record;
  write(member("././@LongLink", key + "1.png" + '\0', 'L') + member("cut", png(1)) +
        member("pax", pax, 'x') + member("cut", png(2)) + kEnd);
  const TarDataset set(folder_.path());
  ASSERT_EQ(set.size(), 2);
  EXPECT_TRUE(set.describe(0).ends_with(key + "1.png"));
  EXPECT_TRUE(set.describe(1).ends_with(key + "2.png"));
  EXPECT_EQ(set.get(1).image, picture(6, 8, 3, 2));
}

TEST_F(Tar, DamageIsAnError) {
  const std::string good = member("1.png", png(1)) + member("1.cls", "1") + kEnd;
  EXPECT_EQ(TarDataset(write(good)).size(), 1);
  constexpr size_t kUnused = 155;  // after the digits of the checksum
  for (size_t at = 0; at < 512; at += at + 1 == kUnused ? 2 : 1) {  // a header has a checksum
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_THROW(TarDataset(write(changed)).get(0), Error) << at;
  }
  EXPECT_ERROR(TarDataset(write(good.substr(0, 500))), "a header does not fit");
  EXPECT_ERROR(TarDataset(write(good.substr(0, 600))), "the file was cut off");
  EXPECT_ERROR(TarDataset(write(good + good)), "data after the end");
  EXPECT_ERROR(TarDataset(write("\x1f\x8b" + good.substr(2))), "wrong checksum");
  EXPECT_ERROR(TarDataset(write(member("1.cls", "x") + kEnd)), "got 'x', expected a class");
  EXPECT_ERROR(TarDataset(write(member("1.cls", "-1") + kEnd)), "expected a class");
  EXPECT_ERROR(TarDataset(write(member("1.cls", "1") + member("1.cls", "1") + kEnd)), "twice");
  EXPECT_ERROR(TarDataset(write(member("1.png", "", 'S') + kEnd)), "sparse");
  EXPECT_ERROR(TarDataset(write(kEnd)), "no samples");
  EXPECT_ERROR(TarDataset(write(member("n", "99 path=x\n", 'x') + good)), "not valid");
  EXPECT_ERROR(TarDataset(write(member("n", "12 size=-12\n", 'x') + good)), "no valid");
  EXPECT_ERROR(TarDataset(write(member("l", "n\0", 'L'))), "ends after an extended header");
}

TEST_F(Tar, PartsAreFoundByOpenDataset) {
  std::filesystem::create_directories(folder_.path() / "train");
  write(member("1.png", png(1)) + member("1.cls", "1") + kEnd, "train/a.tar");
  write(member("1.png", png(1)) + member("1.cls", "0") + kEnd, "val/a.tar");
  const TrainTest parts = open_dataset(folder_.path());
  EXPECT_EQ(parts.format, Format::tar);
  EXPECT_EQ(parts.test->label(0), 0);
  EXPECT_EQ(parts.train->class_names().size(), 2u);
}

}  // namespace
}  // namespace binade::data::shared_formats_test
