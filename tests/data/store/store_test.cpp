// Tests packed stores: any kind of sample is returned unchanged; every changed byte is an error; a
// store appears complete or not at all.
#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/core/tensor/create.h>
#include <binade/data/encode.h>
#include <binade/data/loader.h>
#include <binade/data/sets/list_dataset.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/data/sets/token_windows.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>
#include <binade/data/store/store_format_internal.h>
#include <binade/data/store/store_writer.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "tests/data/fake_dataset.h"
#include "tests/data/image_stream.h"
#include "tests/data/test_files.h"

namespace binade::data::store_test {
namespace {

using test::FakeDataset;
using test::picture;
using test::read_stream;

class Store : public ::testing::Test {
 protected:
  std::string path(const char* name = "store") const { return folder_.path() / name; }
  std::vector<uint8_t> bytes(const std::string& name) const {
    const auto all = binade::read_file(path() + "/" + name);
    const auto* data = reinterpret_cast<const uint8_t*>(all.data());
    return {data, data + all.size()};
  }
  // A folder of 5 pictures, one of them a JPEG.
  std::string photos() const {
    for (int i = 0; i < 4; ++i) {
      const Image image = picture(20 + i, 30, 3, static_cast<uint64_t>(i));
      test::write_file(
          folder_.path() / "photos" / (i % 2 == 0 ? "cat" : "dog") / (std::to_string(i) + ".png"),
          encode_png(image));
    }
    test::write_file(folder_.path() / "photos/dog/9.jpg", encode_jpeg(picture(40, 60, 3, 9)));
    return folder_.path() / "photos";
  }
  test::TemporaryFolder folder_;
};

Sample mixed_sample(int64_t i) {
  Sample sample{.image = picture(3 + static_cast<int>(i), 5, 3, static_cast<uint64_t>(i)),
                .label = i % 3};
  sample.masks.emplace_back("mask", picture(3 + static_cast<int>(i), 5, 1, 77));
  sample.boxes.push_back(
      {"boxes", Boxes{3 + static_cast<int>(i), 5, {{0, 0.5f, 2, 3}, {1, 1, 4, 2.25f}}, {i, -1}}});
  sample.boxes.push_back({"none of them", Boxes{3, 5}});
  sample.set("ids", Tensor::from(std::vector<int64_t>{i, 300 * i, 70'000 * i, -i}));
  sample.set("small", Tensor::from(std::vector<int64_t>{i, 255}, {2, 1}));
  sample.set("middle", Tensor::from(std::vector<int32_t>{60'000}));
  sample.set("wide", Tensor::from(std::vector<int64_t>{int64_t{1} << 31}));
  sample.set("scalar", full({}, 2.5));
  sample.set("none", empty({0, 4}));
  sample.set("flags", Tensor::from(std::vector<bool>{true, false}));
  return sample;
}

void expect_equal(const Sample& got, const Sample& expected) {
  EXPECT_EQ(got.image, expected.image);
  EXPECT_EQ(got.label, expected.label);
  EXPECT_EQ(got.values, expected.values);
  EXPECT_EQ(got.masks, expected.masks);
  EXPECT_EQ(got.boxes, expected.boxes);
  ASSERT_EQ(got.fields.size(), expected.fields.size());
  for (const auto& [name, tensor] : expected.fields) {
    EXPECT_EQ(got[name].dtype(), tensor.dtype()) << name;
    EXPECT_EQ(got[name].sizes(), tensor.sizes()) << name;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      EXPECT_EQ(got[name].at(i), tensor.at(i)) << name;
    }
  }
}

TEST_F(Store, HasSamplesOfEveryKindAsTheyWere) {
  StoreWriter writer(path(), {.shard_bytes = 4096});
  for (int64_t i = 0; i < 50; ++i) {
    writer.add(mixed_sample(i), text("origin ", i));
  }
  writer.finish();
  const StoreDataset store(path());
  ASSERT_EQ(store.size(), 50);
  EXPECT_GT(list_directory(path()).size(), 5u);  // several shards
  for (const int64_t i : {0, 49, 7, 23, 22, 24, 7}) {
    expect_equal(store.get(i), mixed_sample(i));
    EXPECT_EQ(store.label(i), i % 3);
  }
  EXPECT_EQ(store.class_count(), 3);
  EXPECT_EQ(store.channels(), 3);
  EXPECT_EQ(store.length(5, "ids"), 4);
  EXPECT_EQ(store.length(5, "absent"), std::nullopt);
  EXPECT_TRUE(store.describe(23).ends_with("(origin 23)")) << store.describe(23);
  EXPECT_TRUE(store.verify().empty());
  EXPECT_ERROR(store.get(50), "index 50, expected one of 50");
  EXPECT_ERROR(StoreDataset(path("absent")), "is no store");
}

TEST_F(Store, ValuesAndSamplesWithoutLabels) {
  StoreWriter writer(path());
  writer.add({.values = {1.5f, -2}});
  writer.add({.values = {3, 4}});
  writer.finish();
  const StoreDataset store(path());
  EXPECT_EQ(store.get(1).values, (std::vector<float>{3, 4}));
  EXPECT_EQ(store.get(0).label, kNoLabel);
  EXPECT_EQ(store.label(0), std::nullopt);
  EXPECT_EQ(store.class_count(), 0);
  EXPECT_EQ(store.channels(), 0);
}

// Crops are taken from the mapping and equal crops of the whole image.
TEST_F(Store, StreamIsThatOfTheDatasetItWasMadeOf) {
  const FakeDataset fake(40, 9);
  pack(fake, path(), {.images = PackImages::raw, .shard_bytes = 4096});
  const StoreDataset store(path());
  EXPECT_TRUE(store.in_memory());
  for (const Transform& transform : {Transform(), random_crop(8, 8, 2), random_resized_crop(5, 6),
                                     sequence({random_crop(7, 7), random_horizontal_flip()})}) {
    LoaderOptions options{.batch = 7, .workers = 0, .seed = 3, .transform = transform};
    Loader reference(fake, options);
    const test::Stream expected = read_stream(reference, 2);
    for (const int workers : {0, 1, 2, 8}) {
      options.workers = workers;
      Loader loader(store, options);
      EXPECT_EQ(read_stream(loader, 2), expected);
      EXPECT_EQ(read_stream(loader, 2), expected);
    }
  }
}

TEST_F(Store, KeepsFilesOrPixelsOrJpegs) {
  const std::string from = photos();
  const ImageFolder folder(from, Part::train, {.test_share = 1e-9});
  const PackResult kept = pack(folder, path("kept"));
  EXPECT_EQ(kept.samples, 5);
  const StoreDataset store(path("kept"));
  EXPECT_FALSE(store.in_memory());
  EXPECT_EQ(store.class_names(), folder.class_names());
  pack(folder, path("jpeg"), {.images = PackImages::jpeg, .quality = 90});
  pack(folder, path("raw"), {.images = PackImages::raw, .transform = resize(8, 9)});
  const StoreDataset jpegs(path("jpeg")), small(path("raw"));
  for (int64_t i = 0; i < 5; ++i) {
    expect_equal(store.get(i), folder.get(i));
    const Image expected = folder.get(i).image;
    const bool was_jpeg = folder.describe(i).ends_with(".jpg");
    const Image got = jpegs.get(i).image;
    EXPECT_EQ(got == expected, was_jpeg);  // the JPEG is kept; the others lose a little
    ASSERT_EQ(got.pixels.size(), expected.pixels.size());
    EXPECT_EQ(small.get(i).image, resize_image(expected, 8, 9));
  }
  EXPECT_EQ(small.channels(), 3);
  pack(store, path("again"));  // files are kept as they are
  EXPECT_FALSE(StoreDataset(path("again")).in_memory());
  expect_equal(StoreDataset(path("again")).get(4), folder.get(4));
}

TEST_F(Store, OfPartsIsFoundByOpenDataset) {
  pack(open_dataset(photos(), Format::automatic, {.seed = 2, .test_share = 0.4}), path());
  const TrainTest parts = open_dataset(path());
  EXPECT_EQ(parts.format, Format::store);
  EXPECT_EQ(parts.train->size() + parts.test->size(), 5);
  EXPECT_EQ(parts.train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  pack(FakeDataset(50), path("whole"));
  const TrainTest split = open_dataset(path("whole"), Format::automatic, {.test_share = 0.3});
  EXPECT_EQ(split.train->size() + split.test->size(), 50);
  EXPECT_GT(split.test->size(), 3);
  EXPECT_EQ(split.test->class_count(), 10);
}

TEST_F(Store, TokensAndTensors) {
  std::vector<int64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  const TokenWindows windows(ids, {.context = 16});
  const PackResult result = pack(windows, path());
  EXPECT_LT(result.bytes, std::ssize(ids) * 8 * 2);  // two bytes per id
  const StoreDataset store(path());
  expect_equal(store.get(3), windows.get(3));
  const TensorDataset tensors({{"x", randn({9, 2, 3})}, {"labels", randint(0, 4, {9})}});
  pack(tensors, path("tensors"));
  expect_equal(StoreDataset(path("tensors")).get(8), tensors.get(8));
}

TEST_F(Store, AppendsAllOrNothing) {
  const auto sample = [](int64_t label) {
    return Sample{.image = picture(2, 2, 3, static_cast<uint64_t>(label)), .label = label};
  };
  const ListDataset first({sample(0), sample(1)}, {"cat", "dog"});
  const ListDataset second({sample(1), sample(0), sample(2)}, {"dog", "ant", "cat"});
  EXPECT_ERROR(pack(first, path(), {.append = true}), "no store to append to");
  pack(first, path());
  EXPECT_ERROR(pack(first, path()), "the folder is not empty");
  const auto before = bytes(kStoreManifest);
  {
    StoreWriter writer(path(), {.class_names = {"cat", "dog"}, .append = true});
    writer.add(sample(1));
    EXPECT_ERROR(StoreWriter(path(), {.append = true}), "another process writes to this store");
    EXPECT_ERROR(writer.add(sample(2)), "label 2, expected one of 2 classes");
  }
  EXPECT_EQ(bytes(kStoreManifest), before);
  EXPECT_EQ(list_directory(path()).size(), 3u);  // the manifest, the marker and one shard
  test::write_file(path() + "/00001.bin", std::vector<uint8_t>(9));  // left by a killed process
  test::write_file(path() + "/00001.bin.1-1.tmp", std::vector<uint8_t>(9));
  EXPECT_EQ(pack(second, path(), {.append = true}).samples, 3);
  const StoreDataset store(path());
  EXPECT_EQ(store.class_names(), (std::vector<std::string>{"cat", "dog", "ant"}));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < store.size(); ++i) {
    labels.push_back(store.get(i).label);
  }
  EXPECT_EQ(labels, (std::vector<int64_t>{0, 1, 2, 1, 0}));
  EXPECT_TRUE(store.verify().empty());
  EXPECT_ERROR(StoreWriter(path(), {.class_names = {"dog"}, .append = true}), "do not begin with");
}

class NamedDataset : public FakeDataset {
 public:
  using FakeDataset::FakeDataset;
  std::vector<std::string> class_names() const override {
    return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  }
};

// Without that, a repeated append would add the training samples twice.
TEST_F(Store, AnAppendThatFailsInOnePartChangesNeither) {
  const auto first = std::make_shared<NamedDataset>(6), second = std::make_shared<NamedDataset>(3);
  const auto broken = std::make_shared<NamedDataset>(3);
  broken->before_get = [](int64_t index) { check(index != 2, "broken on purpose"); };
  const auto both = [](const auto& train, const auto& test) {
    return TrainTest{.train = train, .test = test, .format = Format::automatic};
  };
  pack(both(first, second), path());
  EXPECT_ERROR(pack(both(first, broken), path(), {.append = true}), "broken on purpose");
  for (const char* part : {"/train", "/test"}) {
    EXPECT_EQ(list_directory(path() + part).size(), 2u) << "a manifest and a shard";
  }
  EXPECT_EQ(StoreDataset(path() + "/train").size(), 6);
  EXPECT_EQ(pack(both(first, second), path(), {.append = true}).samples, 9);
  EXPECT_EQ(StoreDataset(path() + "/train").size(), 12);
  EXPECT_EQ(StoreDataset(path() + "/test").size(), 6);
  StoreWriter writer(path() + "/train", {.append = true});
  writer.add(first->get(0));
  writer.prepare();
  EXPECT_ERROR(writer.add(first->get(1)), "after prepare()");
}

TEST_F(Store, BadSamplesAreErrorsOrLeftOut) {
  FakeDataset fake(6);
  fake.before_get = [](int64_t index) { check(index != 4, "broken on purpose"); };
  EXPECT_ERROR(pack(fake, path()), "pack: sample 4 (fake/4.png): broken on purpose");
  EXPECT_EQ(file_kind(path()), "No such file or directory");
  const PackResult result = pack(fake, path(), {.skip_bad = true});
  EXPECT_EQ(result.samples, 5);
  ASSERT_EQ(result.bad.size(), 1u);
  EXPECT_TRUE(StoreDataset(path()).describe(4).ends_with("(fake/5.png)"));
}

// Changes bits of the shard, of its index and of the manifest. An unused byte may change.
TEST_F(Store, EveryChangedByteThatIsUsedIsAnError) {
  pack(FakeDataset(3), path(), {.images = PackImages::raw});
  const StoreDataset good(path());
  std::vector<Sample> expected;
  for (int64_t i = 0; i < 3; ++i) {
    expected.push_back(good.get(i));
  }
  for (const std::string& name : {std::string("00000.bin"), std::string(kStoreManifest)}) {
    const std::vector<uint8_t> original = bytes(name);
    for (size_t at = 0; at < original.size(); ++at) {
      std::vector<uint8_t> changed = original;
      changed[at] ^= static_cast<uint8_t>(1 << (at % 8));
      std::filesystem::remove(path() + "/" + name);  // the mapping in `good` keeps the old file
      test::write_file(path() + "/" + name, changed);
      try {
        const StoreDataset store(path());
        for (int64_t i = 0; i < store.size(); ++i) {
          EXPECT_EQ(store.get(i).image, expected[static_cast<size_t>(i)].image) << name << at;
        }
        EXPECT_EQ(name, "00000.bin") << "byte " << at;
      } catch (const Error&) {
      }
    }
    for (const size_t left : {size_t{0}, size_t{1}, original.size() - 1}) {
      test::write_file(path() + "/" + name, std::span(original).first(left));
      EXPECT_THROW(StoreDataset store(path()), Error);
    }
    std::filesystem::remove(path() + "/" + name);
    EXPECT_THROW(StoreDataset store(path()), Error);
    test::write_file(path() + "/" + name, original);
  }
}

TEST_F(Store, NamesWhatIsChanged) {
  pack(FakeDataset(3), path(), {.images = PackImages::raw});
  std::vector<uint8_t> shard = bytes("00000.bin");
  shard[100] ^= 1;
  test::write_file(path() + "/00000.bin", shard);
  const StoreDataset store(path());
  EXPECT_ERROR(store.get(0), "00000.bin:0: the sample has another checksum");
  EXPECT_EQ(store.get(1).label, 1);
  EXPECT_EQ(store.verify().size(), 1u);
  Loader loader(store, {.batch = 3, .workers = 1, .bad_file = BadFilePolicy::skip});
  EXPECT_EQ(read_stream(loader, 0).labels.size(), 2u);
  const StoreDataset trusting(path(), {.verify = VerifySamples::never});
  EXPECT_NO_THROW(trusting.get(0));
  std::filesystem::resize_file(path() + "/00000.bin", 64);
  EXPECT_ERROR(store.get(1), "became shorter while it was in use");
}

// Records with valid checksums but false offsets.
TEST_F(Store, HostileRecordsAreErrors) {
  const std::string sample = encode_sample({.values = {1}}, "x");
  const auto store_with = [&](const Record& record, const std::string& payload) {
    std::filesystem::remove_all(path());
    std::string shard(kShardMagic.data(), kShardMagic.size());
    shard += payload + std::string((8 - payload.size() % 8) % 8, '\0');
    shard.append(reinterpret_cast<const char*>(&record), sizeof record);
    StoreManifest manifest{.classes = 2};
    manifest.shards.push_back({.bytes = shard.size(),
                               .samples = 1,
                               .index_crc = crc32c(std::as_bytes(std::span(&record, 1)))});
    test::write_file(path() + "/00000.bin", test::bytes_of(shard));
    test::write_file(path() + "/" + kStoreManifest, test::bytes_of(to_text(manifest)));
    StoreDataset(path(), {.verify = VerifySamples::never}).get(0);
  };
  const Record good{.offset = 16, .bytes = static_cast<uint32_t>(sample.size())};
  EXPECT_NO_THROW(store_with(good, sample));
  Record bad = good;
  bad.offset = uint64_t{1} << 63;
  EXPECT_ERROR(store_with(bad, sample), "the index says");
  bad = good;
  bad.bytes = 0xffffffff;
  EXPECT_ERROR(store_with(bad, sample), "the index says");
  bad = good;
  bad.label = 2;
  EXPECT_ERROR(store_with(bad, sample), "label 2, expected less than 2");
  for (size_t at = 0; at < sample.size(); ++at) {  // false sizes give an error or other values
    for (const int value : {0, 1, 127, 255}) {
      std::string altered = sample;
      altered[at] = static_cast<char>(value);
      static_cast<void>(error_of([&] { store_with(good, altered); }));
    }
  }
  EXPECT_ERROR(store_with(good, std::string(sample.size(), '\xff')), "parts");
}

// Opening a store allocates nothing of the size of its index. With BINADE_LONG there are 10^7
// samples. The time is printed.
TEST_F(Store, OfManySamplesOpensInBoundedMemory) {
  const bool is_long = std::getenv("BINADE_LONG") != nullptr;
  const int64_t samples = is_long ? 2'000'000 : 100'000;  // in each shard
  std::string shard(kShardMagic.data(), kShardMagic.size());
  const std::string sample = encode_sample({.values = {1}}, "");
  shard += sample + std::string((8 - sample.size() % 8) % 8, '\0');
  std::vector<Record> records(static_cast<size_t>(samples),
                              {.offset = 16,
                               .label = 0,
                               .bytes = static_cast<uint32_t>(sample.size()),
                               .crc = crc32c(std::as_bytes(std::span(sample)))});
  const auto index = std::as_bytes(std::span(records));
  shard.append(reinterpret_cast<const char*>(index.data()), index.size());
  StoreManifest manifest{.channels = 0, .classes = 1};
  for (size_t i = 0; i < 5; ++i) {
    test::write_file(path() + "/" + shard_name(i), test::bytes_of(shard));
    manifest.shards.push_back(
        {.bytes = shard.size(), .samples = samples, .index_crc = crc32c(index)});
  }
  test::write_file(path() + "/" + kStoreManifest, test::bytes_of(to_text(manifest)));
  const int64_t before = memory_stats().reserved;
  const auto start = std::chrono::steady_clock::now();
  const StoreDataset store(path());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%lld samples: opened in %.3f s\n", static_cast<long long>(5 * samples),
              seconds.count());
  EXPECT_EQ(store.size(), 5 * samples);
  EXPECT_EQ(store.get(5 * samples - 1).values, std::vector<float>{1});
  EXPECT_LT(memory_stats().reserved - before, 1 << 20);
  Loader loader(store, {.batch = 4, .workers = 1});
  EXPECT_EQ((*loader.begin()).size, 4);
}

}  // namespace
}  // namespace binade::data::store_test
