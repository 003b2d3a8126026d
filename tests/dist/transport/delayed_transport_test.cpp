#include <binade/dist/job/threads.h>
#include <binade/dist/transport/delayed_transport.h>
#include <tests/dist/collective/ring_cases.h>
#include <tests/dist/job/ranks.h>
#include <tests/dist/transport/transport_cases.h>
#include <tests/support/error_of.h>

namespace binade::dist::delayed_transport_test {
namespace {

std::vector<std::string> run_delayed(int size, const LinkDelay& link,
                                     const std::function<void(Transport&)>& body) {
  return run_ranks(size, [&](Transport& t) {
    const std::shared_ptr<Transport> inner(std::shared_ptr<void>(), &t);
    body(*with_delay(inner, link));
  });
}

class DelayedTransport : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DelayedTransport, testing::Values(1, 2, 3));

constexpr LinkDelay kShort{.latency = 1e-4, .bytes_per_second = 1e9};

TEST_P(DelayedTransport, PassesOn) { expect_no_errors(run_delayed(GetParam(), kShort, pass_on)); }
TEST_P(DelayedTransport, KeepsOrder) {
  expect_no_errors(run_delayed(GetParam(), kShort, keep_order));
}
TEST_P(DelayedTransport, Splits) {
  expect_no_errors(run_delayed(GetParam(), kShort, split_in_two));
}
TEST_P(DelayedTransport, RingsReduce) {
  expect_no_errors(run_delayed(GetParam(), kShort, [](Transport& t) {
    exact_collectives(t, {0, 1, 1003}, {});
    same_bits(t, 1000, {.piece_bytes = 400});
  }));
}

// A message takes at least the time of its link, but messages of several groups follow closely: the
// latency passes only once.
TEST(DelayedTransport, AMessageTakesItsTime) {
  using Clock = std::chrono::steady_clock;
  constexpr LinkDelay link{.latency = 0.02, .bytes_per_second = 1e5};
  expect_no_errors(run_delayed(2, link, [](Transport& t) {
    std::vector<char> bytes(1000);
    const Clock::time_point start = Clock::now();
    uint64_t ticket = 0;
    for (int i = 0; i < 3; ++i) {
      t.group_start();
      t.rank() == 0 ? t.send(1, bytes.data(), 1000) : t.receive(0, bytes.data(), 1000);
      ticket = t.group_end();
    }
    t.wait(ticket);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    check(t.bytes_sent() == (t.rank() == 0 ? 3000 : 0), "sent ", t.bytes_sent());
    const double least = t.rank() == 0 ? 0.03 : 0.03 + 0.02;
    check(t.rank() == 1 || seconds >= least, "took ", seconds, " s");
    // The receiver may have started a little later or earlier than the sender.
    check(t.rank() == 0 || seconds >= least - 0.02, "took ", seconds, " s");
  }));
}

TEST(DelayedTransport, AnInterruptEndsTheWait) {
  const auto errors = run_delayed(2, {.latency = 1000}, [](Transport& t) {
    char byte = 0;
    t.group_start();
    t.rank() == 0 ? t.send(1, &byte, 1) : t.receive(0, &byte, 1);
    const uint64_t ticket = t.group_end();
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      t.interrupt();
    });
    const std::string error = t.rank() == 0 ? "" : error_of([&] { t.wait(ticket); });
    other.join();
    check(t.rank() == 0 || error == "the transport was interrupted", error);
  });
  expect_no_errors(errors);
}

TEST(DelayedTransport, ALeavingPeerIsSeen) {
  const auto errors = run_delayed(2, kShort, [](Transport& t) {
    char byte = 0;
    if (t.rank() == 0) {
      t.group_start();
      t.receive(1, &byte, 1);
      t.wait(t.group_end());
    }
  });
  EXPECT_EQ(errors[0], "rank 1 has left");
}

// CommunicatorOptions::link has this effect in run_threads() and World.
TEST(DelayedTransport, CarriesCollectives) {
  run_threads(3,
              [](Communicator& group) {
                const Tensor x = full({10}, group.rank() + 1);
                group.all_reduce(x);
                check(x.at(9) == 6, "got ", x.at(9));
                const auto half = group.split(group.rank() / 2);
                half->all_reduce(x);
                check(x.at(0) == (group.rank() == 2 ? 6 : 12), "got ", x.at(0));
              },
              {.link = kShort});
}

TEST(LinkDelay, IsReadFromText) {
  EXPECT_TRUE(parse_link_delay("").none());
  EXPECT_DOUBLE_EQ(parse_link_delay("0.5").latency, 5e-4);
  EXPECT_DOUBLE_EQ(parse_link_delay("2,100").latency, 2e-3);
  EXPECT_DOUBLE_EQ(parse_link_delay("2,100").bytes_per_second, 1e8);
  for (const char* bad : {"x", "-1", "1,", "1,2,3", "1 2", "inf", "nan"}) {
    EXPECT_EQ(error_of([&] { parse_link_delay(bad); }),
              text("link delay: got '", bad,
                   "', expected milliseconds, or milliseconds and MB/s: 0.5,100"));
  }
}

}  // namespace
}  // namespace binade::dist::delayed_transport_test
