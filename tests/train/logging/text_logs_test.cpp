// Tests Logger, JsonLines and Csv: lines, resume, crashes, a full disk, links, wrong uses.
#include <binade/core/tensor/create.h>
#include <binade/data/sample.h>
#include <binade/train/logging/csv.h>
#include <binade/train/logging/json_lines.h>
#include <binade/train/logging/tensorboard.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/logging/log_files.h"

namespace binade::train::text_logs_test {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::FullDisk;
using testing::TemporaryDirectory;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A logger of the user that records its calls.
class Recorder : public Logger {
 public:
  Recorder() : Logger("recorder") {}
  std::string calls;

 private:
  void open(const LogStart& start) override {
    calls += text_of("open", start.step);
    EXPECT_NE(start.files, nullptr);
  }
  void write(const ScalarRecord& record) override {
    calls += text_of("scalars", record.step) + text_of(record.values[0].first, record.epoch);
  }
  void write_image(int64_t step, const std::string& tag, const data::Image&) override {
    calls += text_of(tag, step);
  }
  void close() override { calls += "close "; }
  static std::string text_of(const std::string& word, int64_t number) {
    return binade::text(word, number, " ");
  }
};

TEST(Logger, OfTheUsersOwnGetsTheCallsOfRank0) {
  for (const int rank : {0, 1}) {
    Recorder logger;
    logger.start({.step = 3, .rank = rank});
    logger.scalars({.step = 4, .epoch = 1, .values = {{"loss", 2}}});
    logger.image(4, "picture", data::make_image(1, 1, 1));
    logger.histogram(4, "weights", ones({2}));  // not overridden
    logger.finish();
    logger.finish();
    EXPECT_EQ(logger.calls, rank == 0 ? "open3 scalars4 loss1 picture4 close " : "");
  }
}

TEST(Logger, WrongUsesAreOneErrorOnEveryRank) {
  for (const int rank : {0, 1}) {
    Recorder logger;
    EXPECT_EQ(error_of([&] { logger.scalars({}); }),
              "recorder: got scalars() before start(), expected start() first");
    logger.start({.rank = rank});
    const auto error = [&](const NamedValues& values) {
      return error_of([&] { logger.scalars({.values = values}); });
    };
    EXPECT_NE(error({{"a", 1}, {"a", 2}}).find("got 'a' twice"), std::string::npos);
    EXPECT_NE(error({{"step", 1}}).find("got 'step' twice"), std::string::npos);
    EXPECT_NE(error({{"", 1}}).find("got the name ''"), std::string::npos);
    EXPECT_NE(error({{"\xff", 1}}).find("expected a name in UTF-8"), std::string::npos);
    EXPECT_NE(error_of([&] { logger.histogram(0, "h", empty({0})); }).find("without elements"),
              std::string::npos);
    logger.finish();
    EXPECT_NE(error_of([&] { logger.text(1, "t", "x"); }).find("got text() after finish()"),
              std::string::npos);
    logger.start({.rank = rank});
    logger.finish();
  }
}

TEST(Logger, PointersTakeValuesAndSharedPointers) {
  const auto shared = std::make_shared<Recorder>();
  const std::vector<LoggerPtr> loggers = {JsonLines(), Csv(), TensorBoard(), shared, LoggerPtr()};
  EXPECT_EQ(loggers[0]->name(), "json_lines");
  EXPECT_EQ(loggers[3].get(), shared.get());
  EXPECT_FALSE(loggers[4]);
}

TEST(JsonLines, AreJson) {
  const TemporaryDirectory here;
  JsonLines log;
  log.start({.directory = here.path()});
  log.scalars({.step = 1, .epoch = 0, .values = {{"train_loss", 0.1}, {"a\"b\n", 1e300}}});
  log.scalars({.step = 2, .values = {{"x", kNaN}, {"y", 3}}, .words = {{"precision", "fp16"}}});
  log.text(2, "sample", "to be\nor");
  log.finish();
  EXPECT_EQ(contents(here / "log.jsonl"),
            "{\"epoch\":0,\"step\":1,\"train_loss\":0.1,\"a\\\"b\\u000a\":1e+300}\n"
            "{\"epoch\":0,\"step\":2,\"x\":null,\"y\":3,\"precision\":\"fp16\"}\n"
            "{\"step\":2,\"sample\":\"to be\\u000aor\"}\n");
}

TEST(Csv, QuotesAsInRfc4180) {
  const TemporaryDirectory here;
  Csv log({.file = "table.csv"});
  log.start({.directory = here.path()});
  log.scalars({.step = 1, .epoch = 0, .values = {{"a,b", 0.1}, {"say \"x\"", -INFINITY}}});
  log.scalars({.step = 2, .epoch = 1, .values = {{"a,b", kNaN}}});
  log.finish();
  EXPECT_EQ(contents(here / "table.csv"),
            "step,epoch,\"a,b\",\"say \"\"x\"\"\"\n1,0,0.1,-inf\n2,1,nan,\n");
}

TEST(Csv, ANameThatComesLaterBecomesAColumn) {
  const TemporaryDirectory here;
  Csv log;
  log.start({.directory = here.path()});
  log.scalars({.step = 1, .values = {{"a", 1}}, .words = {{"note", "two\nlines, \"q\""}}});
  log.scalars({.step = 2, .values = {{"b", 2}, {"c", 3}}});
  log.scalars({.step = 3, .values = {{"c", 4}}});
  log.finish();
  EXPECT_EQ(contents(here / "log.csv"),
            "step,epoch,a,note,b,c\n1,0,1,\"two\nlines, \"\"q\"\"\",,\n2,0,,,2,3\n3,0,,,,4\n");
  // A resumed run continues with the same columns.
  Csv again;
  again.start({.directory = here.path(), .resumed = true, .step = 2});
  again.scalars({.step = 3, .values = {{"b", 5}, {"d", 6}}});
  EXPECT_EQ(
      contents(here / "log.csv"),
      "step,epoch,a,note,b,c,d\n1,0,1,\"two\nlines, \"\"q\"\"\",,,\n2,0,,,2,3,\n3,0,,,5,,6\n");
  EXPECT_EQ(contents(here / "log.csv.cut"), "3,0,,,,4\n");
}

TEST(Csv, DeclaredColumnsStay) {
  const TemporaryDirectory here;
  Csv log({.columns = {"b", "a"}});
  log.start({.directory = here.path()});
  log.scalars({.step = 1, .values = {{"a", 1}}});
  EXPECT_NE(error_of([&] {
              log.scalars({.step = 2, .values = {{"a", 1}, {"z", 2}}});
            }).find("csv: got a value 'z', expected one of the declared columns b, a"),
            std::string::npos);
  log.scalars({.step = 3, .values = {{"b", 2}}});
  EXPECT_EQ(contents(here / "log.csv"), "step,epoch,b,a\n1,0,,1\n3,0,2,\n");
  Csv other({.columns = {"a"}});
  other.start({.directory = here.path(), .resumed = true, .step = 3});
  EXPECT_NE(error_of([&] {
              other.scalars({.step = 4, .values = {{"a", 1}}});
            }).find("with the columns step, epoch, b, a"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              Csv({.columns = {"a", "epoch"}});
            }).find("'epoch' twice"),
            std::string::npos);
}

TEST(Csv, AForeignFileStays) {
  const TemporaryDirectory here;
  std::ofstream(here / "log.csv") << "x,y\n1,2\n";
  Csv log;
  log.start({.directory = here.path(), .resumed = true, .step = 9});
  EXPECT_NE(error_of([&] {
              log.scalars({.step = 1, .values = {{"a", 1}}});
            }).find("with the columns x, y, expected step, epoch"),
            std::string::npos);
  EXPECT_EQ(contents(here / "log.csv"), "x,y\n1,2\n");
}

// The steps in a log whose lines begin with the step or have it as a field.
std::vector<int64_t> steps_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::vector<int64_t> steps;
  while (std::getline(in, line)) {
    if (line.starts_with('{')) {
      steps.push_back(nlohmann::json::parse(line).at("step").get<int64_t>());
    } else if (!line.starts_with("step")) {
      steps.push_back(std::stoll(line));
    }
  }
  return steps;
}

template <class Log>
class TextLogs : public ::testing::Test {
 protected:
  static constexpr const char* kFile = std::is_same_v<Log, Csv> ? "log.csv" : "log.jsonl";
  static void write(Logger& log, int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) {
      log.scalars({.step = step, .values = {{"loss", 1.0 / static_cast<double>(step)}}});
    }
  }
};
using Kinds = ::testing::Types<JsonLines, Csv>;
TYPED_TEST_SUITE(TextLogs, Kinds);

TYPED_TEST(TextLogs, AResumedRunHasEachStepOnce) {
  const TemporaryDirectory here;
  const std::string file = here / TestFixture::kFile;
  TypeParam log;
  log.start({.directory = here.path()});
  this->write(log, 1, 6);
  // Simulates a crash in the middle of a line.
  const std::string whole = contents(file);
  std::ofstream(file, std::ios::app) << whole.substr(whole.size() - 9, 5);
  TypeParam resumed;
  resumed.start({.directory = here.path(), .resumed = true, .step = 3});
  EXPECT_EQ(contents(file).size(), whole.size() + 5);  // nothing is cut until a line is written
  this->write(resumed, 4, 8);
  EXPECT_EQ(steps_of(file), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(contents(file + ".cut").size(),
            5 + whole.size() - whole.find("\n", whole.find("3")) - 1);
  // Returns to an earlier step within the same process.
  resumed.start({.directory = here.path(), .resumed = true, .step = 5});
  this->write(resumed, 6, 7);
  EXPECT_EQ(steps_of(file), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(fs::exists(file + ".cut-2"));
}

TYPED_TEST(TextLogs, ANewRunKeepsTheOldLinesElsewhere) {
  const TemporaryDirectory here;
  const std::string file = here / TestFixture::kFile;
  for (int run = 0; run < 2; ++run) {
    TypeParam log;
    log.start({.directory = here.path()});
    this->write(log, 1, 3);
    log.finish();
  }
  EXPECT_EQ(steps_of(file), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(contents(file + ".cut"), contents(file));
}

TYPED_TEST(TextLogs, AFullDiskIsOneErrorAndLeavesWholeLines) {
  const TemporaryDirectory here;
  const std::string file = here / TestFixture::kFile;
  for (int64_t room = 0; room < 12; ++room) {
    FullDisk disk;
    TypeParam log;
    log.start({.directory = here.path(), .files = &disk});
    this->write(log, 1, 3);
    disk.room = room;
    const std::string error = error_of([&] { this->write(log, 3, 4); });
    EXPECT_NE(error.find(file), std::string::npos) << error;
    EXPECT_NE(error.find("No space left"), std::string::npos) << error;
    EXPECT_NE(error_of([&] { this->write(log, 4, 5); }), "none");
    disk.room = 1000;
    this->write(log, 5, 6);
    EXPECT_EQ(steps_of(file), (std::vector<int64_t>{1, 2, 5})) << room;
  }
}

TYPED_TEST(TextLogs, LinksInTheRunAreNotFollowed) {
  const TemporaryDirectory here, elsewhere;
  std::ofstream(elsewhere / "target") << "mine\n";
  fs::create_symlink(elsewhere / "target", here / TestFixture::kFile);
  TypeParam log;
  log.start({.directory = here.path()});
  const std::string error = error_of([&] { this->write(log, 1, 2); });
  EXPECT_NE(error.find("a link"), std::string::npos) << error;
  EXPECT_EQ(contents(elsewhere / "target"), "mine\n");
}

TYPED_TEST(TextLogs, WithoutADirectoryPathsAreThoseOfTheProcess) {
  const TemporaryDirectory here;
  TypeParam log({.file = here / "own.log"});
  log.start({});
  this->write(log, 1, 3);
  log.finish();
  EXPECT_EQ(steps_of(here / "own.log"), (std::vector<int64_t>{1, 2}));
}

TYPED_TEST(TextLogs, OtherRanksWriteNothing) {
  const TemporaryDirectory here;
  TypeParam log;
  log.start({.directory = here / "run", .rank = 1});
  this->write(log, 1, 3);
  log.finish();
  EXPECT_FALSE(fs::exists(here / "run"));
}

}  // namespace
}  // namespace binade::train::text_logs_test
