// Every step of every ladder: right results at small and odd shapes, in all schedules, without a
// race, and the counts that its comment claims.
#include <gtest/gtest.h>
#include <tests/ladders/cases.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace ladders {
namespace {

using plain_cuda::Step;

std::string contents(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string short_name(const Step& step) {
  const std::filesystem::path path(step.file);
  return path.parent_path().filename().string() + "_" + path.stem().string();
}

class Ladders : public testing::TestWithParam<Step> {};

TEST_P(Ladders, RightInAllOrders) {
  const Step& step = GetParam();
  const Case* one = find_case(step.case_name);
  ASSERT_NE(one, nullptr) << step.case_name;
  for (const Shape& shape : one->shapes) {
    for (const std::string& inputs : one->inputs) {
      for (const Order& order : orders()) {
        set_order(order);
        const Outcome outcome = one->run(step.solve, shape, inputs);
        EXPECT_EQ(outcome.fault, "")
            << to_string(shape, one->dimensions) << ", " << inputs << ", " << order.name;
        if (inputs != one->inputs.front()) {
          break;  // the order of threads was tried with the first inputs
        }
      }
    }
  }
}

// "Counted (64x64): global ..." over one or more comment lines.
TEST_P(Ladders, CountsAreThoseOfTheComment) {
  const Step& step = GetParam();
  const Case* one = find_case(step.case_name);
  ASSERT_NE(one, nullptr) << step.case_name;
  const std::string text = contents(step.file);
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(text, found, std::regex("// Counted \\(([0-9x]+)\\): ((.|\n//)+)")));
  EXPECT_EQ(found[1], to_string(one->counted, one->dimensions));
  const std::string said = std::regex_replace(found[2].str(), std::regex("\n// *"), " ");
  EXPECT_EQ(said, counts(*one, step.solve, one->counted, step.file)) << step.file;
}

INSTANTIATE_TEST_SUITE_P(All, Ladders, testing::ValuesIn(plain_cuda::steps()),
                         [](const auto& step) { return short_name(step.param); });

TEST(LaddersOnDisk, EveryFileIsAStep) {
  std::set<std::string> there, tested;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(BINADE_SOURCE_DIR "/lab/ladders")) {
    if (entry.path().extension() == ".cu") {
      there.insert(entry.path().string());
    }
  }
  for (const Step& step : plain_cuda::steps()) {
    tested.insert(step.file);
  }
  EXPECT_EQ(there, tested);
}

}  // namespace
}  // namespace ladders
