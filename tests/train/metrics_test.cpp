// Tests metrics.jsonl: the fields of a line, and what a resumed run keeps.
#include <binade/core/io/file_system.h>
#include <binade/train/metrics.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

namespace binade::train::metrics_test {
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

ScalarRecord line_of(int64_t epoch, int64_t step) {
  return {.step = step,
          .epoch = epoch,
          .values = {{"train_loss", 0.1},
                     {"validation_loss", 1.0 / 3},
                     {"samples_per_second", 12.5},
                     {"skipped_steps", 2}},
          .words = {{"precision", "fp16"}, {"mode", "fast"}, {"state_hash", "0123456789abcdef"}}};
}

TEST_F(MetricsFileTest, WritesOneLinePerRecord) {
  MetricsFile file(path_.native(), 0, 0);
  file.add(line_of(0, 10));
  file.append(line_of(1, 15));
  file.append(line_of(1, 16));
  file.add(line_of(1, 20));
  EXPECT_EQ(contents(), to_json(line_of(0, 10)) + "\n" + to_json(line_of(1, 15)) + "\n" +
                            to_json(line_of(1, 16)) + "\n" + to_json(line_of(1, 20)) + "\n");
  EXPECT_TRUE(contents().starts_with("{\"epoch\":0,\"step\":10,\"train_loss\":0.1,"));
  EXPECT_NE(contents().find("\"validation_loss\":0.3333333333333333,"), std::string::npos);
  EXPECT_NE(contents().find("\"skipped_steps\":2,\"precision\":\"fp16\",\"mode\":\"fast\","),
            std::string::npos);
}

TEST_F(MetricsFileTest, ResumedFileKeepsLinesOfStepsBeforeOnly) {
  {
    MetricsFile file(path_.native(), 0, 0);
    file.add(line_of(0, 10));
    file.append(line_of(1, 12));
    file.append(line_of(1, 14));
    file.add(line_of(1, 20));
  }
  MetricsFile file(path_.native(), 1, 12);
  file.append(line_of(1, 14));
  EXPECT_EQ(contents(), to_json(line_of(0, 10)) + "\n" + to_json(line_of(1, 12)) + "\n" +
                            to_json(line_of(1, 14)) + "\n");
}

// Lines of earlier versions do not have a step.
TEST_F(MetricsFileTest, LinesWithoutAStepCountByTheirEpoch) {
  write_file_durably(path_.native(), "{\"epoch\":0}\n{\"epoch\":1}\n");
  MetricsFile file(path_.native(), 1, 7);
  file.add(line_of(1, 8));
  EXPECT_EQ(contents(), "{\"epoch\":0}\n" + to_json(line_of(1, 8)) + "\n");
}

TEST_F(MetricsFileTest, ValuesOfATestGoIntoTheLastLineOfAnEarlierProcessToo) {
  {
    MetricsFile file(path_.native(), 0, 0);
    file.add(line_of(0, 10));
    file.add(line_of(1, 20));
  }
  for (double accuracy : {0.25, 0.1 + 0.2}) {
    MetricsFile(path_.native(), 2, 20).set_in_last({{"test_accuracy", accuracy}});
    ScalarRecord last = line_of(1, 20);
    last.values.emplace_back("test_accuracy", accuracy);
    EXPECT_EQ(contents(), to_json(line_of(0, 10)) + "\n" + to_json(last) + "\n");
  }
}

TEST_F(MetricsFileTest, LossesThatAreNoNumbersStayValidJson) {
  ScalarRecord line = line_of(0, 1);
  line.values[0].second = std::numeric_limits<double>::quiet_NaN();
  MetricsFile file(path_.native(), 0, 0);
  file.add(line);
  file.set_in_last({{"test_accuracy", 0.5}});
  EXPECT_NE(contents().find("\"train_loss\":null,"), std::string::npos);
  EXPECT_NE(contents().find("\"test_accuracy\":0.5,"), std::string::npos);
}

TEST_F(MetricsFileTest, WithoutPathOrLinesNothingIsWritten) {
  MetricsFile nowhere;
  nowhere.add(line_of(0, 1));
  nowhere.append(line_of(0, 2));
  nowhere.set_in_last({{"test_loss", 1}});
  MetricsFile(path_.native(), 0, 0).set_in_last({{"test_loss", 1}});
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace binade::train::metrics_test
