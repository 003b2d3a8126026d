// metrics.jsonl: the fields of a line, and what a resumed run keeps.
#include <binade/core/io/file_system.h>
#include <binade/train/metrics.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

namespace binade::train {
namespace {

namespace fs = std::filesystem;

class MetricsFileTest : public ::testing::Test {
 protected:
  MetricsFileTest()
      : path_(fs::temp_directory_path() / ("binade-metrics-" + std::to_string(getpid()))) {}
  ~MetricsFileTest() override { fs::remove(path_); }

  std::string contents() const {
    const std::vector<std::byte> bytes = read_file(path_.native());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  fs::path path_;
};

EpochMetrics metrics_of(int64_t epoch) {
  EpochMetrics m;
  m.epoch = epoch;
  m.train_loss = 0.1;
  m.validation_loss = 1.0 / 3;
  m.samples_per_second = 12.5;
  m.precision = "fp16";
  m.mode = "fast";
  m.state_hash = "0123456789abcdef";
  return m;
}

TEST_F(MetricsFileTest, WritesOneLinePerEpoch) {
  MetricsFile file(path_.native(), 0);
  file.add(metrics_of(0));
  file.add(metrics_of(1));
  EXPECT_EQ(contents(), to_json(metrics_of(0)) + "\n" + to_json(metrics_of(1)) + "\n");
  EXPECT_NE(contents().find("\"validation_loss\":0.3333333333333333,"), std::string::npos);
  EXPECT_NE(contents().find("\"precision\":\"fp16\",\"mode\":\"fast\","), std::string::npos);
}

TEST_F(MetricsFileTest, ResumedFileKeepsEarlierEpochsOnly) {
  MetricsFile(path_.native(), 0).add(metrics_of(0));
  {
    MetricsFile file(path_.native(), 1);
    file.add(metrics_of(1));
    file.add(metrics_of(2));
  }
  MetricsFile file(path_.native(), 2);
  file.add(metrics_of(2));
  EXPECT_EQ(contents(), to_json(metrics_of(0)) + "\n" + to_json(metrics_of(1)) + "\n" +
                            to_json(metrics_of(2)) + "\n");
}

TEST_F(MetricsFileTest, TestAccuracyGoesIntoTheLastLineOfAnEarlierProcessToo) {
  EpochMetrics last = metrics_of(1);
  {
    MetricsFile file(path_.native(), 0);
    file.add(metrics_of(0));
    file.add(last);
  }
  for (double accuracy : {0.25, 0.1 + 0.2}) {
    MetricsFile(path_.native(), 2).set_test_accuracy(accuracy);
    last.test_accuracy = accuracy;
    EXPECT_EQ(contents(), to_json(metrics_of(0)) + "\n" + to_json(last) + "\n");
  }
}

TEST_F(MetricsFileTest, LossesThatAreNoNumbersStayValidJson) {
  EpochMetrics m = metrics_of(0);
  m.train_loss = std::numeric_limits<double>::quiet_NaN();
  MetricsFile file(path_.native(), 0);
  file.add(m);
  file.set_test_accuracy(0.5);
  EXPECT_NE(contents().find("\"train_loss\":null,"), std::string::npos);
  EXPECT_NE(contents().find("\"test_accuracy\":0.5,"), std::string::npos);
}

TEST_F(MetricsFileTest, WithoutPathOrLinesNothingIsWritten) {
  MetricsFile nowhere;
  nowhere.add(metrics_of(0));
  nowhere.set_test_accuracy(1);
  MetricsFile(path_.native(), 0).set_test_accuracy(1);
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace binade::train
