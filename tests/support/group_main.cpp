// main() of a program that holds the tests of many sources (binade_test_group in
// tests/CMakeLists.txt). Under the name of one source it runs the tests of this source alone:
// bin/core_tensor_test, a link to bin/core_tests, runs those of tests/core/**/tensor_test.cpp.
// Flags of GoogleTest select among them.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

// The name of the program that runs a test: its folder below tests/ and the stem of its source.
std::string program_of(const testing::TestInfo& test) {
  const std::string file = test.file();
  const size_t tests = file.rfind("/tests/");
  const std::string below = tests == std::string::npos ? file : file.substr(tests + 7);
  return below.substr(0, below.find('/')) + "_" + std::filesystem::path(below).stem().string();
}

void append(std::string& names, const std::string& name) {
  names += (names.empty() ? "" : ":") + name;
}

// Selects the tests of the program's source; a filter of the command line selects among them.
// Returns their number.
int select(const std::string& program) {
  int selected = 0;
  std::string own, others;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    const int before = selected;
    std::string own_tests, other_tests;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      const bool is_own = program_of(test) == program;
      selected += is_own;
      append(is_own ? own_tests : other_tests, std::string(suite.name()) + "." + test.name());
    }
    const int count = selected - before;
    const std::string whole = std::string(suite.name()) + ".*";
    if (count > 0) {
      append(own, count == suite.total_test_count() ? whole : own_tests);
    }
    if (count < suite.total_test_count()) {
      append(others, count == 0 ? whole : other_tests);
    }
  }
  std::string filter = testing::GTEST_FLAG(filter);
  if (filter == "*") {
    filter = own;
  } else {
    filter += (filter.find('-') == std::string::npos ? "-" : ":") + others;
  }
  testing::GTEST_FLAG(filter) = filter;
  return selected;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = std::filesystem::path(argv[0]).filename();
  testing::InitGoogleTest(&argc, argv);
  if (!program.ends_with("_tests") && select(program) == 0) {
    std::fprintf(stderr, "%s: got no test of a source of this name\n", argv[0]);
    return 1;
  }
  return RUN_ALL_TESTS();
}
