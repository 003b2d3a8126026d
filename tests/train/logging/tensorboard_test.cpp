// Tests TensorBoard's event files byte by byte: framing, resume, crashes, a full disk, links.
// TensorBoard's own reader reads them in tests/system/tensorboard_test.py.
#include <binade/core/io/crc32c.h>
#include <binade/core/tensor/create.h>
#include <binade/data/sample.h>
#include <binade/train/logging/tensorboard.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/logging/log_files.h"

namespace binade::train::tensorboard_test {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::FullDisk;
using testing::TemporaryDirectory;

uint64_t number_at(const std::string& bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) {
    number |= static_cast<uint64_t>(static_cast<uint8_t>(bytes.at(at + i))) << 8 * i;
  }
  return number;
}

uint64_t masked_crc(const std::string& bytes) {
  const uint32_t crc = crc32c_portable(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8U);
}

// The events of a file without an incomplete one at its end, as a reader sees them.
std::vector<std::string> events_of(const std::string& path) {
  const std::string bytes = contents(path);
  std::vector<std::string> events;
  for (size_t at = 0; at + 12 <= bytes.size();) {
    const uint64_t length = number_at(bytes, at, 8);
    EXPECT_EQ(number_at(bytes, at + 8, 4), masked_crc(bytes.substr(at, 8)));
    if (at + 16 + length > bytes.size()) {
      break;
    }
    events.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(number_at(bytes, at + 12 + length, 4), masked_crc(events.back()));
    at += 16 + length;
  }
  return events;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    names.push_back(folder + "/" + entry.name);
  }
  return names;  // sorted
}

void write(Logger& log, int64_t step) { log.scalars({.step = step, .values = {{"loss", 0.5}}}); }

// The step of an event, which follows 9 bytes of time.
int64_t step_of(const std::string& event) {
  EXPECT_EQ(event.at(9), 0x10);
  return event.at(10);
}

TEST(TensorBoard, WritesAScalarAsTheFormatSays) {
  const TemporaryDirectory here;
  TensorBoard log;
  log.start({.directory = here.path()});
  EXPECT_FALSE(fs::exists(here / "tensorboard"));  // nothing before the first event
  write(log, 5);
  log.finish();
  const std::vector<std::string> files = files_in(here / "tensorboard");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_NE(files[0].find("/events.out.tfevents."), std::string::npos);
  const std::vector<std::string> events = events_of(files[0]);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  EXPECT_EQ(events[1].substr(9), std::string("\x10\0\x3a\x02\x08\x01", 6));  // START of step 0
  EXPECT_EQ(events[2][0], 0x09);                                             // wall_time, a double
  EXPECT_GT(std::bit_cast<double>(number_at(events[2], 1, 8)), 1.7e9);
  const std::string value("\x0a\x04loss\x15\0\0\0\x3f", 11);
  EXPECT_EQ(events[2].substr(9), std::string("\x10\x05\x2a\x0d\x0a\x0b", 6) + value);
}

TEST(TensorBoard, EveryStartIsANewFileBehindTheOthers) {
  const TemporaryDirectory here;
  const std::string folder = here / "tensorboard";
  fs::create_directories(folder);
  std::ofstream(folder + "/events.out.tfevents.9999999990.host.1");  // as after a clock change
  TensorBoard log;
  for (int64_t step : {4, 2, 7}) {
    log.start({.directory = here.path(), .resumed = true, .step = step});
    write(log, step + 1);
    write(log, step + 2);
  }
  const std::vector<std::string> files = files_in(folder);
  ASSERT_EQ(files.size(), 4U);
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<std::string> events = events_of(files[i + 1]);
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(events[1].substr(11), "\x3a\x02\x08\x01");  // session_log: START
    EXPECT_EQ(step_of(events[1]), (std::vector<int64_t>{5, 3, 8})[i]);
    EXPECT_EQ(step_of(events[2]), (std::vector<int64_t>{5, 3, 8})[i]);
  }
}

TEST(TensorBoard, ANewRunMakesTheOldEventsVoid) {
  const TemporaryDirectory here;
  for (int run = 0; run < 2; ++run) {
    TensorBoard log;
    log.start({.directory = here.path()});
    write(log, 3);
  }
  const std::vector<std::string> files = files_in(here / "tensorboard");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(events_of(files[0]).size(), 3U);
  EXPECT_EQ(step_of(events_of(files[1])[1]), 0);
}

TEST(TensorBoard, AFullDiskIsOneErrorAndTheLogGoesOn) {
  for (int64_t room = 0; room < 70; room += 7) {
    const TemporaryDirectory here;
    FullDisk disk;
    TensorBoard log;
    log.start({.directory = here.path(), .files = &disk});
    write(log, 1);
    disk.room = room % 40;
    const std::string error = error_of([&] {
      write(log, 2);
      write(log, 3);
    });
    EXPECT_NE(error.find(here / "tensorboard/events"), std::string::npos) << error;
    EXPECT_NE(error.find("No space left"), std::string::npos) << error;
    EXPECT_NE(error_of([&] { write(log, 4); }), "none");
    disk.room = 1000;
    write(log, 5);
    std::vector<int64_t> steps;
    for (const std::string& file : files_in(here / "tensorboard")) {
      for (const std::string& event : events_of(file)) {
        if (event.size() > 20 && event[11] == 0x2a) {
          steps.push_back(step_of(event));
        }
      }
    }
    EXPECT_EQ(steps.front(), 1);
    EXPECT_EQ(steps.back(), 5);
    EXPECT_LE(steps.size(), 3U);
  }
}

TEST(TensorBoard, LinksInTheRunAreNotFollowed) {
  const TemporaryDirectory here, elsewhere;
  fs::create_directory_symlink(elsewhere.path(), here / "tensorboard");
  TensorBoard log;
  log.start({.directory = here.path()});
  EXPECT_NE(error_of([&] { write(log, 1); }), "none");
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
}

TEST(TensorBoard, ValuesThatAreNotFiniteAreCounted) {
  const TemporaryDirectory here;
  TensorBoard log;
  log.start({.directory = here.path()});
  constexpr double kInf = std::numeric_limits<double>::infinity();
  log.histogram(1, "w", from_values({1, kInf, std::nan(""), -kInf}, {4}));
  log.histogram(2, "w", from_values({kInf}, {1}));
  log.histogram(3, "w", Tensor::from({int64_t{1} << 60, int64_t{3}}));
  log.histogram(4, "w", Tensor::from({true, false}));
  const std::vector<std::string> events = events_of(files_in(here / "tensorboard")[0]);
  ASSERT_EQ(events.size(), 7U);
  EXPECT_NE(events[3].find("w/not_finite"), std::string::npos);
  EXPECT_NE(events[4].find("w/not_finite"), std::string::npos);
}

TEST(TensorBoard, BadPicturesAreAnErrorAndWriteNothing) {
  const TemporaryDirectory here;
  TensorBoard log;
  log.start({.directory = here.path()});
  EXPECT_NE(error_of([&] { log.image(1, "x", data::Image{}); }).find("got an image of 0 x 0"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(here / "tensorboard"));
  EXPECT_NE(error_of([] { TensorBoard({.folder = ""}); }).find("got no folder"), std::string::npos);
}

}  // namespace
}  // namespace binade::train::tensorboard_test
