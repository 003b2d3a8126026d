// Tests the names and the scope of the mode, and that the default is fast.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/math_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace binade::kernels::math_mode_test {
namespace {

TEST(MathMode, BeginsAsFastAndGuardsRestore) {
  if (!std::getenv("BINADE_MODE")) {
    EXPECT_EQ(math_mode(), MathMode::fast);
  }
  const MathMode before = math_mode();
  {
    const MathModeGuard outer(MathMode::precise);
    EXPECT_EQ(math_mode(), MathMode::precise);
    {
      const MathModeGuard inner(MathMode::fast);
      EXPECT_EQ(math_mode(), MathMode::fast);
    }
    EXPECT_EQ(math_mode(), MathMode::precise);
  }
  EXPECT_EQ(math_mode(), before);
}

TEST(MathMode, Names) {
  for (const MathMode mode : {MathMode::fast, MathMode::precise}) {
    EXPECT_EQ(parse_math_mode(to_string(mode), "test"), mode);
  }
  try {
    parse_math_mode("exact", "BINADE_MODE");
    FAIL() << "an unknown name passed";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "BINADE_MODE: got exact, expected fast or precise");
  }
}

}  // namespace
}  // namespace binade::kernels::math_mode_test
