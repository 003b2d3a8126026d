// Every op of the op table is compared with PyTorch: it has cases in tests/parity/cases, or it is
// in tests/parity/shared_ops.txt, which lists the ops with cases in ../shared/parity.
#include <binade/core/io/safetensors.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <tests/op_table/op_table.h>

namespace binade {
namespace {

using Names = std::set<std::string>;

struct Covered {
  Names ops, with_gradient, in_half;  // in_half: cases whose inputs are exact in 16 bits
};

void add_cases(const std::filesystem::path& folder, Covered& covered) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") {
      continue;
    }
    const SafetensorsFile file = SafetensorsFile::open(entry.path().string());
    for (const auto& json : nlohmann::json::parse(file.metadata().at("cases"))) {
      const std::string op = json.at("op"), name = json.at("name");
      covered.ops.insert(op);
      if (!json.at("requires_grad").empty()) {
        covered.with_gradient.insert(op);
      }
      if (name.ends_with("_f16")) {
        covered.in_half.insert(op);
      }
    }
  }
}

Names shared_ops() {
  std::ifstream list(std::filesystem::path(BINADE_SOURCE_DIR) / "tests/parity/shared_ops.txt");
  Names names;
  for (std::string name; list >> name;) {
    names.insert(name);
  }
  return names;
}

// The name that cases have for the op of a row.
std::string parity_name(const op_table::OpRow& row) {
  static const std::map<std::string, std::string> others = {
      {"scaled_dot_product_attention", "sdpa"}, {"log_sigmoid", "logsigmoid"}};
  const auto other = others.find(row.name);
  return (other == others.end() ? row.name : other->second) + (row.number ? "_scalar" : "");
}

// Ops that PyTorch has not. tests/core/precision/number_formats_test.cpp compares the first with
// ml_dtypes and gfloat.
const Names& ops_without_counterpart() {
  static const Names names = {"round_to_format", "accumulated_matmul"};
  return names;
}

TEST(ParityClosure, EveryOpHasCases) {
  const Names shared = shared_ops();
  ASSERT_GT(shared.size(), 100u);
  Covered own;
  add_cases(std::filesystem::path(BINADE_SOURCE_DIR) / "tests/parity/cases", own);
  Names missing;
  for (const op_table::OpRow& row : op_table::op_table()) {
    const std::string name = parity_name(row);
    if (shared.count(name) || ops_without_counterpart().count(name)) {
      continue;
    }
    if (!own.ops.count(name)) {
      missing.insert(name + ": no case");
    } else if (row.differentiable && !own.with_gradient.count(name)) {
      missing.insert(name + ": no case with a gradient");
    } else if (!own.in_half.count(name)) {
      missing.insert(name + ": no case that runs in f16 and bf16");
    }
  }
  for (const std::string& what : missing) {
    ADD_FAILURE() << what
                  << "; run tests/parity/generate.py, whose first lines say what an op needs";
  }
}

TEST(ParityClosure, TheListOfSharedOpsIsTrue) {
  const char* given = std::getenv("BINADE_SHARED");
  const std::filesystem::path folder =
      (given ? std::filesystem::path(given)
             : std::filesystem::path(BINADE_SOURCE_DIR) / "../shared") /
      "parity/cases";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "no " << folder;
  }
  Covered covered;
  add_cases(folder, covered);
  for (const std::string& name : shared_ops()) {
    EXPECT_TRUE(covered.ops.count(name)) << name << " has no case in " << folder;
  }
}

}  // namespace
}  // namespace binade
