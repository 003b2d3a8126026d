// Lines about calls that a user's kernel does not compute.
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/user/user_object_internal.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/plan_limit.h>

namespace binade::kernels::user_notes_test {
namespace {

int notices = 0;

TEST(UserNotes, EachLineComesOnceAndOnlyTheLastOnesAreKept) {
  const PlanLimit limit(3);
  set_notice_sink([](const std::string&) { ++notices; });
  for (int round = 0; round < 5; ++round) {
    for (const char* shape : {"[1]", "[2]", "[3]"}) {
      note_user_once(std::string("declined ") + shape);
    }
    EXPECT_EQ(notices, 3);
  }
  note_user_once("declined [4]");  // takes the place of [1]
  note_user_once("declined [3]");
  EXPECT_EQ(notices, 4);
  note_user_once("declined [1]");
  EXPECT_EQ(notices, 5);
}

}  // namespace
}  // namespace binade::kernels::user_notes_test
