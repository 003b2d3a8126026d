// Checks that a new operation is complete: every formula has a row, and every row has a case.
#include <gtest/gtest.h>
#include <tests/kernels/pointwise/binary_cases.h>
#include <tests/kernels/pointwise/unary_cases.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace binade::kernels::pointwise_closure_test {
namespace {

TEST(PointwiseClosure, EveryUnaryOperationHasACase) {
  std::set<Unary> seen;
  for (const UnaryCase& c : unary_cases()) {
    seen.insert(c.op);
  }
  for (int i = 0; i < kUnaryCount; ++i) {
    EXPECT_TRUE(seen.contains(Unary(i)))
        << kUnaryName[i] << " is in a list of kernels/pointwise/pointwise.h but has no case: add "
        << "{.op = Unary::" << kUnaryName[i]
        << ", .formula = ...} to tests/kernels/pointwise/unary_cases.h";
  }
}

TEST(PointwiseClosure, EveryBinaryOperationHasACase) {
  std::set<Binary> seen;
  for (const BinaryCase& c : binary_cases()) {
    seen.insert(c.op);
  }
  for (int i = 0; i < kBinaryCount; ++i) {
    EXPECT_TRUE(seen.contains(Binary(i)))
        << kBinaryName[i] << " is in a list of kernels/pointwise/pointwise.h but has no case: add "
        << "{.op = Binary::" << kBinaryName[i]
        << ", .f = ...} to tests/kernels/pointwise/binary_cases.h";
  }
}

// A formula without a row would be code that nothing calls.
TEST(PointwiseClosure, EveryFunctorHasARow) {
  const std::set<std::string> listed = {
#define BINADE_FUNCTOR(name, Functor, ...) #Functor,
      BINADE_UNARY_OPS(BINADE_FUNCTOR) BINADE_BINARY_OPS(BINADE_FUNCTOR)
#undef BINADE_FUNCTOR
  };
  const std::regex functor(R"(^struct (\w+) \{.*)");
  size_t found = 0;
  for (const char* name : {"pointwise_functors.h", "binary_functors.h"}) {
    std::ifstream file(std::string(BINADE_SOURCE_DIR) + "/kernels/pointwise/" + name);
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_match(line, match, functor) && match[1] != "Wrapping") {
        ++found;
        EXPECT_TRUE(listed.contains(match[1]))
            << "functor::" << match[1] << " has no row: add X(name, " << match[1]
            << ", ...) to a list of kernels/pointwise/pointwise.h";
      }
    }
  }
  EXPECT_EQ(found, listed.size()) << "the functors were not understood";
}

}  // namespace
}  // namespace binade::kernels::pointwise_closure_test
