// Tests appends to a store of two parts: whenever the process dies, both parts have their new
// samples or none has.
#include <binade/core/io/file_system.h>
#include <binade/data/image_folder.h>
#include <binade/data/store/joint_append_internal.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>
#include <binade/data/store/store_writer.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/data/fake_dataset.h"
#include "tests/data/test_files.h"

namespace binade::data::joint_append_test {
namespace {

class NamedDataset : public test::FakeDataset {
 public:
  using FakeDataset::FakeDataset;
  std::vector<std::string> class_names() const override {
    return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  }
};

class JointAppend : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "store") const { return folder_.path() / name; }
  test::TemporaryFolder folder_;
};

// The steps of an append to two parts, each of which may be the last one of a killed process.
enum class LastStep { nothing, prepared, decided, renamed_one, renamed_both };

void append_until(LastStep last, const std::string& folder, const Dataset& samples) {
  StoreWriter train(folder + "/train", {.append = true}), test(folder + "/test", {.append = true});
  for (StoreWriter* writer : {&train, &test}) {
    for (int64_t i = 0; i < samples.size(); ++i) {
      writer->add(samples.get(i));
    }
  }
  if (last == LastStep::nothing) {
    _exit(0);
  }
  std::vector<std::string> manifests;
  for (const std::string part : {"train", "test"}) {
    (part == "train" ? train : test).prepare();
    for (const DirectoryEntry& entry : list_directory(folder + "/" + part)) {
      if (entry.name.ends_with(".tmp")) {
        manifests.push_back(part + "/" + entry.name);
      }
    }
  }
  if (last == LastStep::prepared) {
    _exit(0);
  }
  write_joint_append(folder, manifests);
  const size_t renamed = last == LastStep::decided ? 0 : last == LastStep::renamed_one ? 1 : 2;
  for (size_t i = 0; i < renamed; ++i) {
    const std::string path = folder + "/" + manifests.at(i);
    rename_path(path, parent_directory(path) + "/" + kStoreManifest);
  }
  _exit(manifests.size() == 2 ? 0 : 1);
}

TEST_F(JointAppend, AKilledAppendToTwoPartsChangesBothOrNone) {
  const auto first = std::make_shared<NamedDataset>(6), second = std::make_shared<NamedDataset>(3);
  for (const LastStep last : {LastStep::nothing, LastStep::prepared, LastStep::decided,
                              LastStep::renamed_one, LastStep::renamed_both}) {
    SCOPED_TRACE(static_cast<int>(last));
    const std::string folder = path("store" + std::to_string(static_cast<int>(last)));
    pack({.train = first, .test = second, .format = Format::automatic}, folder);
    EXPECT_EQ(file_kind(folder + "/" + kJointAppend), "No such file or directory");
    const pid_t child = fork();
    if (child == 0) {
      append_until(last, folder, *second);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const int64_t more = last >= LastStep::decided ? 3 : 0;
    for (int repeat = 0; repeat < 2; ++repeat) {  // reading changes nothing
      const TrainTest both = open_dataset(folder);
      EXPECT_EQ(both.train->size(), 6 + more);
      EXPECT_EQ(both.test->size(), 3 + more);
      EXPECT_TRUE(StoreDataset(folder + "/test").verify().empty());
    }
    EXPECT_EQ(pack({.train = first, .test = second, .format = Format::automatic}, folder,
                   {.append = true})
                  .samples,
              9);
    EXPECT_EQ(StoreDataset(folder + "/train").size(), 12 + more);
    EXPECT_EQ(StoreDataset(folder + "/test").size(), 6 + more);
    EXPECT_EQ(file_kind(folder + "/" + kJointAppend), "No such file or directory");
    for (const char* part : {"/train", "/test"}) {
      EXPECT_EQ(list_directory(folder + part).size(), more > 0 ? 4u : 3u) << "only its own files";
      EXPECT_TRUE(StoreDataset(folder + part).verify().empty());
    }
  }
}

TEST_F(JointAppend, AnAlteredFileOfAnAppendIsAnError) {
  pack({.train = std::make_shared<NamedDataset>(4),
        .test = std::make_shared<NamedDataset>(2),
        .format = Format::automatic},
       path());
  write_joint_append(path(), {"train/binade-store.txt.0.tmp", "test/binade-store.txt.0.tmp"});
  EXPECT_EQ(StoreDataset(path() + "/train").size(), 4) << "an append that is long complete";
  const auto written = binade::read_file(path() + "/" + kJointAppend);
  const auto* data = reinterpret_cast<const uint8_t*>(written.data());
  std::vector<uint8_t> changed(data, data + written.size());
  ++changed[20];
  test::write_file(path() + "/" + kJointAppend, changed);
  EXPECT_ERROR(StoreDataset(path() + "/train"), "binade-append.txt: was altered or cut off");
  EXPECT_ERROR(StoreWriter(path() + "/test", {.append = true}), "was altered or cut off");
}

}  // namespace
}  // namespace binade::data::joint_append_test
