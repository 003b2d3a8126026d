// The table is complete: every op that core/ops.h, a header of core/ops or core/linalg/linalg.h
// declares has a row and error cases.
#include <binade/core/linalg/linalg.h>
#include <tests/op_table/op_table.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace binade::op_table {
namespace {

// "add" and "add(number)", the overload whose second argument is a number.
std::set<std::string> declared_ops() {
  const std::filesystem::path core = std::filesystem::path(BINADE_SOURCE_DIR) / "core";
  std::vector<std::filesystem::path> headers = {core / "ops.h"};
  for (const auto& entry : std::filesystem::directory_iterator(core / "ops")) {
    if (entry.path().extension() == ".h") {
      headers.push_back(entry.path());
    }
  }
  if (linalg::is_available()) {  // its rows would only throw
    headers.push_back(core / "linalg" / "linalg.h");
  }
  std::stringstream all;
  for (const auto& path : headers) {
    all << std::ifstream(path).rdbuf() << "\n";
  }
  const std::string header = all.str();
  const std::regex declaration(
      R"(\n(?:std::vector<Tensor>|Tensor|(?!(?:Reduction|Grads) )[A-Z]\w+) (\w+)\()"
      R"((?:const (?:Tensor|std::vector<Tensor>)&|std::string_view) \w+(, double)?)");
  std::vector<std::pair<std::string, bool>> found;
  std::map<std::string, int> overloads;
  for (std::sregex_iterator i(header.begin(), header.end(), declaration), end; i != end; ++i) {
    found.emplace_back((*i)[1], (*i)[2].matched);
    ++overloads[(*i)[1]];
  }
  std::set<std::string> names;
  for (const auto& [name, number] : found) {
    names.insert(name + (number && overloads[name] > 1 ? "(number)" : ""));
  }
  return names;
}

TEST(Closure, EveryOpHasARow) {
  const std::set<std::string> declared = declared_ops();
  ASSERT_GT(declared.size(), 50u) << "the declarations were not understood";
  std::set<std::string> rows;
  for (const OpRow& row : op_table()) {
    rows.insert(row.name + (row.number ? "(number)" : ""));
  }
  for (const std::string& name : declared) {
    EXPECT_TRUE(rows.count(name))
        << name << " is declared but has no row in tests/op_table: add one to the "
        << "file of its family (an op of kernels/pointwise/pointwise.h: a case to unary_cases.h or "
        << "binary_cases.h of tests/kernels/pointwise)";
  }
  for (const std::string& name : rows) {
    EXPECT_TRUE(declared.count(name))
        << name
        << " has a row but is not declared: declare it in the header of core/ops of its family";
  }
}

TEST(Closure, EveryOpHasErrorCases) {
  std::set<std::string> with, without;
  for (const OpRow& row : op_table()) {
    (row.errors.empty() ? without : with).insert(row.name);
  }
  for (const std::string& name : without) {
    EXPECT_TRUE(with.count(name)) << name << " has no error case";
  }
}

TEST(Closure, RowsAreComplete) {
  for (const OpRow& row : op_table()) {
    EXPECT_FALSE(row.shapes.empty()) << row.name;
    EXPECT_FALSE(row.large.empty()) << row.name << ": no sizes that several threads share";
    EXPECT_TRUE(row.function && row.reference) << row.name;
    EXPECT_EQ(row.depth != nullptr, !row.exact_shapes.empty()) << row.name;
  }
}

// A benchmark of a few elements times the call, not the op.
TEST(Closure, EveryOpIsTimedOnManyElements) {
  std::map<std::string, int64_t> most;
  for (const OpRow& row : op_table()) {
    const Shapes& shapes = row.timed.empty() ? row.large : row.timed;
    for (const Dims& sizes : shapes) {
      most[row.name] = std::max(most[row.name], element_count(sizes));
    }
    if (row.flops) {
      most[row.name] = std::max(most[row.name], static_cast<int64_t>(row.flops(shapes)));
    }
  }
  for (const auto& [name, elements] : most) {
    EXPECT_GE(elements, 1 << 16) << name;
  }
}

}  // namespace
}  // namespace binade::op_table
