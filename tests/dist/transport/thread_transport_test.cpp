#include <tests/dist/job/ranks.h>
#include <tests/dist/transport/transport_cases.h>
#include <tests/support/error_of.h>

namespace binade::dist::thread_transport_test {
namespace {

class ThreadTransport : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadTransport, testing::Values(1, 2, 3, 7));

TEST_P(ThreadTransport, PassesOn) { expect_no_errors(run_ranks(GetParam(), pass_on)); }
TEST_P(ThreadTransport, KeepsOrder) { expect_no_errors(run_ranks(GetParam(), keep_order)); }
TEST_P(ThreadTransport, Splits) { expect_no_errors(run_ranks(GetParam(), split_in_two)); }

TEST(ThreadTransportErrors, ALateRankEndsTheWait) {
  const auto errors = run_ranks(2, wait_for_a_late_rank);
  EXPECT_EQ(errors[0], "no answer in 0.1 s");
  EXPECT_EQ(errors[1], "");
}

TEST(ThreadTransportErrors, ARankThatLeftEndsTheWaitAtOnce) {
  const auto errors = run_ranks(3, [](Transport& t) {
    char byte = 0;
    if (t.rank() < 2) {
      t.group_start();
      t.receive(t.rank() + 1, &byte, 1);
      t.wait(t.group_end());
    }
  });
  EXPECT_EQ(errors[1], "rank 2 has left");
  EXPECT_EQ(errors[0], "rank 1 has left");
}

TEST(ThreadTransportErrors, InterruptEndsAWait) {
  const auto errors = run_ranks(1, [](Transport& t) {
    t.interrupt();
    t.group_start();
    t.wait(t.group_end());
  });
  EXPECT_EQ(errors[0], "the transport was interrupted");
}

// A rank fails between a split and its first message, while another rank has yet to split.
TEST(ThreadTransportErrors, ARankMayLeaveASplitBeforeOthersCome) {
  const auto hub = make_thread_hub(2);
  auto quick = make_thread_transport(hub, 0), slow = make_thread_transport(hub, 1);
  quick->split({0, 1});
  quick.reset();
  const auto part = slow->split({0, 1});
  part->set_timeout(5);
  char byte = 0;
  part->group_start();
  part->receive(0, &byte, 1);
  const uint64_t ticket = part->group_end();
  EXPECT_EQ(error_of([&] { part->wait(ticket); }), "rank 0 has left");
}

TEST(ThreadTransportErrors, SizesMustAgree) {
  const auto errors = run_ranks(2, [](Transport& t) {
    char bytes[8] = {};
    t.group_start();
    if (t.rank() == 0) {
      t.send(1, bytes, 8);
    } else {
      t.receive(0, bytes, 4);
    }
    t.wait(t.group_end());
  });
  EXPECT_EQ(errors[0], "rank 1 has left");
  EXPECT_EQ(errors[1], "rank 0 sent 8 bytes, rank 1 expected 4");
}

TEST(ThreadTransportErrors, PeersAreChecked) {
  const auto errors = run_ranks(2, [](Transport& t) {
    t.group_start();
    t.send(t.rank() == 0 ? 2 : 1, nullptr, 1);
  });
  EXPECT_EQ(errors[0], "transport: rank 0 got peer 2, expected another rank of 0 .. 1");
  EXPECT_EQ(errors[1], "transport: rank 1 got peer 1, expected another rank of 0 .. 1");
}

}  // namespace
}  // namespace binade::dist::thread_transport_test
