#include <binade/core/io/sha256.h>
#include <binade/data/identity.h>
#include <binade/data/idx.h>
#include <sys/resource.h>
#include <zlib.h>

#include "tests/data/test_files.h"

namespace binade::data::idx_test {
namespace {

using Bytes = std::vector<uint8_t>;
namespace fs = std::filesystem;

Bytes idx_bytes(const std::vector<uint32_t>& sizes, const Bytes& elements, uint8_t type = 8) {
  Bytes out = {0, 0, type, static_cast<uint8_t>(sizes.size())};
  for (uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      out.push_back(static_cast<uint8_t>(size >> shift));
    }
  }
  out.insert(out.end(), elements.begin(), elements.end());
  return out;
}

Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(::deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}

class Idx : public testing::Test {
 protected:
  // Writes the bytes to a file and reads it.
  IdxArray read(const Bytes& bytes) {
    test::write_file(folder_.path() / "some-idx", bytes);
    return read_idx(folder_.path() / "some-idx");
  }
  void write_all(const char* suffix, const Bytes& images, const Bytes& labels) {
    for (const char* part : {"train", "t10k"}) {
      test::write_file(folder_.path() / text(part, "-images-idx3-ubyte", suffix), images);
      test::write_file(folder_.path() / text(part, "-labels-idx1-ubyte", suffix), labels);
    }
  }
  IdxDataset train() { return IdxDataset(folder_.path(), Part::train); }

  const test::TemporaryFolder folder_;
  const Bytes pixels_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
};

TEST_F(Idx, plain_and_gzip_are_read) {
  const Bytes file = idx_bytes({2, 3, 2}, pixels_);
  for (const Bytes& bytes : {file, gzip(file)}) {
    const IdxArray array = read(bytes);
    EXPECT_EQ(array.sizes, (std::vector<int64_t>{2, 3, 2}));
    EXPECT_EQ(array.elements, pixels_);
  }
  EXPECT_EQ(read(idx_bytes({0, 5}, {})).elements.size(), 0u);
}

TEST_F(Idx, every_truncation_and_every_extra_byte_is_rejected) {
  const Bytes file = idx_bytes({2, 3, 2}, pixels_);
  for (Bytes bytes : {file, gzip(file)}) {
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_ERROR(read(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length))),
                   "some-idx");
    }
    bytes.push_back(0);
    EXPECT_ERROR(read(bytes), "some-idx");
  }
  Bytes longer = file;
  longer.push_back(7);
  EXPECT_ERROR(read(gzip(longer)), "longer than its header says");
}

TEST_F(Idx, every_bit_flip_of_a_gzip_file_is_rejected_or_harmless) {
  const Bytes packed = gzip(idx_bytes({2, 3, 2}, pixels_));
  int rejected = 0;
  for (size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    Bytes broken = packed;
    broken[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    try {
      EXPECT_EQ(read(broken).elements, pixels_) << "bit " << bit;
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 100);
}

TEST_F(Idx, checksums_are_compared) {
  write_all("", idx_bytes({2, 3, 2}, pixels_), idx_bytes({2}, {1, 2}));
  EXPECT_ERROR(IdxDataset(folder_.path() / "train-images-idx3-ubyte",
                          folder_.path() / "train-labels-idx1-ubyte", 10, Checksums::require),
               "no binade-checksums.txt in its folder or above");
  ChecksumManifest::compute(folder_.path()).write();
  EXPECT_EQ(train().size(), 2);
  write_all("", idx_bytes({2, 3, 2}, pixels_), idx_bytes({2}, {1, 3}));  // another label
  EXPECT_ERROR(train(), "train-labels-idx1-ubyte: the file has the checksum");
  write_all("", idx_bytes({2, 3, 2}, pixels_), idx_bytes({1}, {1}));
  EXPECT_ERROR(train(), "train-labels-idx1-ubyte: the file has 9 bytes");
  fs::remove(folder_.path() / "t10k-labels-idx1-ubyte");
  write_all(".gz", gzip(idx_bytes({2, 3, 2}, pixels_)), gzip(idx_bytes({2}, {1, 2})));
  EXPECT_ERROR(IdxDataset(folder_.path(), Part::test),
               "t10k-labels-idx1-ubyte.gz: the file is not listed");
}

TEST_F(Idx, headers_that_lie_are_rejected_before_allocation) {
  EXPECT_ERROR(read(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, pixels_)), "limit");
  EXPECT_ERROR(read(idx_bytes({0x80000000, 0x80000000, 4}, pixels_)), "limit");  // 2^64
  EXPECT_ERROR(read(idx_bytes({60000, 28, 28}, pixels_)), "truncated");
  EXPECT_ERROR(read(gzip(idx_bytes({60000, 28, 28}, pixels_))), "truncated");
  EXPECT_ERROR(read(idx_bytes({2, 3, 2}, pixels_, 0x0d)), "element type 13");
  EXPECT_ERROR(read(idx_bytes({1, 1, 1, 1, 12}, pixels_)), "rank 5");
  EXPECT_ERROR(read({0, 0, 8, 0}), "rank 0");
  EXPECT_ERROR(read({1, 0, 8, 1, 0, 0, 0, 0}), "not an idx file");
  EXPECT_ERROR(read({}), "too short");
  EXPECT_ERROR(read_idx(folder_.path() / "absent"), "absent");
}

int64_t most_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// A file of 4 MB may claim to unpack to gigabytes, but reading it takes only what it holds.
TEST_F(Idx, a_gzip_file_costs_what_it_holds) {
  philox::Stream random(1, 2);
  Bytes noise(4 << 20);  // incompressible
  for (uint8_t& byte : noise) {
    byte = static_cast<uint8_t>(random.next());
  }
  EXPECT_ERROR(read(gzip(idx_bytes({1 << 12, 1 << 10, 1023}, noise))),
               "the limit is a ratio of 300");
  const Bytes lies = gzip(idx_bytes({1 << 10, 1 << 10, 1 << 10}, noise));
  const int64_t before = most_resident_bytes();
  EXPECT_ERROR(read(lies), "truncated");
  EXPECT_LT(most_resident_bytes() - before, int64_t{300} << 20);
  EXPECT_EQ(read(gzip(idx_bytes({4, 1 << 20}, noise))).elements, noise);  // in several steps
  const Bytes zeros = gzip(idx_bytes({1 << 20}, Bytes(1 << 20)));
  EXPECT_EQ(read(zeros).elements.size(), size_t{1} << 20) << "a small file may compress well";
  test::write_file(folder_.path() / "slow", gzip(idx_bytes({1 << 22}, noise)));
  EXPECT_ERROR(read_idx(folder_.path() / "slow", {.max_seconds = 0}), "takes longer than 0 s");
  EXPECT_ERROR(read_idx(folder_.path() / "slow", {.max_bytes = 1 << 20}), "the limit is 1048576");
}

TEST_F(Idx, dataset) {
  write_all(".gz", gzip(idx_bytes({3, 2, 2}, pixels_)), gzip(idx_bytes({3}, {9, 0, 4})));
  EXPECT_TRUE(has_idx_files(folder_.path()));
  const IdxDataset dataset = train();
  EXPECT_EQ(dataset.size(), 3);
  const Sample sample = dataset.get(1);
  EXPECT_EQ(sample.image, (Image{2, 2, 1, {5, 6, 7, 8}}));
  EXPECT_EQ(sample.label, 0);
  EXPECT_EQ(dataset.label(2), 4);
  EXPECT_NE(dataset.id(0), dataset.id(1));
  const DataIdentity before = identify(dataset);
  write_all("", idx_bytes({3, 2, 2}, pixels_), idx_bytes({3}, {0, 9, 4}));
  EXPECT_EQ(difference(identify(train()), before), "other labels");
  EXPECT_EQ(dataset.class_names().size(), 10u);
  EXPECT_TRUE(test::contains(dataset.describe(2), "train-images-idx3-ubyte.gz:2"));
  EXPECT_ERROR(dataset.get(3), "index 3");
  EXPECT_ERROR(dataset.get(-1), "index -1");
}

TEST_F(Idx, datasets_that_do_not_fit_are_rejected) {
  const Bytes images = idx_bytes({3, 2, 2}, pixels_);
  write_all("", images, idx_bytes({3}, {9, 0, 10}));
  EXPECT_EQ(train().class_count(), 11);
  EXPECT_ERROR(IdxDataset(folder_.path(), Part::train, 10),
               "label 10 at index 2, expected less than 10");
  write_all("", images, idx_bytes({2}, {9, 0}));
  EXPECT_ERROR(train(), "3 images, but");
  write_all("", idx_bytes({12}, pixels_), idx_bytes({12}, pixels_));
  EXPECT_ERROR(train(), "expected images");
  write_all("", images, images);
  EXPECT_ERROR(train(), "expected labels");
  write_all("", idx_bytes({3, 2, 0}, {}), idx_bytes({3}, {0, 0, 0}));
  EXPECT_ERROR(train(), "pixels, expected sides");
  EXPECT_ERROR(IdxDataset(folder_.path() / "absent", Part::test), "t10k-images-idx3-ubyte");
}

TEST(IdxFiles, known_statistics_of_fashion_mnist) {
  const auto shared = test::shared_folder();
  if (shared.empty() || !has_idx_files(shared / "data" / "fashion-mnist")) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  const IdxDataset train(shared / "data" / "fashion-mnist", Part::train);
  ASSERT_EQ(train.size(), 60000);
  const DatasetStatistics statistics = compute_mean_std(train);
  EXPECT_NEAR(statistics.mean[0], 0.286041, 1e-6);
  EXPECT_NEAR(statistics.deviation[0], 0.353024, 1e-6);
  EXPECT_TRUE(statistics.one_size());
  const IdxDataset test(shared / "data" / "fashion-mnist", Part::test);
  std::vector<int64_t> counts(10);
  for (int64_t i = 0; i < test.size(); ++i) {
    ++counts[static_cast<size_t>(test.get(i).label)];
  }
  EXPECT_EQ(counts, std::vector<int64_t>(10, 1000));
}

TEST(IdxFiles, decompressed_mnist_has_its_published_hash) {
  const auto shared = test::shared_folder();
  if (shared.empty() || !has_idx_files(shared / "data" / "mnist")) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  const IdxArray labels = read_idx(shared / "data" / "mnist" / "t10k-labels-idx1-ubyte.gz");
  Bytes file = idx_bytes({10000}, labels.elements);
  EXPECT_EQ(hex(sha256(std::as_bytes(std::span(file)))),
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2");
}

}  // namespace
}  // namespace binade::data::idx_test
