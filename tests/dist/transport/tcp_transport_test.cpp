#include <binade/dist/transport/tcp_transport_internal.h>
#include <tests/dist/collective/ring_cases.h>
#include <tests/dist/job/ranks.h>
#include <tests/dist/transport/transport_cases.h>
#include <tests/support/error_of.h>

namespace binade::dist::tcp_transport_test {
namespace {

Key key_of(const std::string& secret) { return derive_key(secret, "test"); }

using Secrets = std::function<std::string(int rank)>;

// The ranks are threads here, but the transport does not know that.
std::vector<std::string> run_tcp_ranks(
    int size, const std::function<void(Transport&)>& body,
    const Secrets& secret_of = [](int) { return "secret"; }) {
  Roster roster;
  std::vector<Socket> listeners;
  for (int rank = 0; rank < size; ++rank) {
    listeners.push_back(listen_at("127.0.0.1", 0));
    roster.push_back({"here", "127.0.0.1", listeners.back().port(), 0});
  }
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto i = static_cast<size_t>(rank);
      try {
        const auto end =
            make_tcp_transport(rank, roster, std::move(listeners[i]), key_of(secret_of(rank)));
        body(*end);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

class TcpTransport : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, TcpTransport, testing::Values(1, 2, 3, 7));

TEST_P(TcpTransport, PassesOn) { expect_no_errors(run_tcp_ranks(GetParam(), pass_on)); }
TEST_P(TcpTransport, KeepsOrder) { expect_no_errors(run_tcp_ranks(GetParam(), keep_order)); }
TEST_P(TcpTransport, Splits) { expect_no_errors(run_tcp_ranks(GetParam(), split_in_two)); }

TEST_P(TcpTransport, RunsTheRing) {
  expect_no_errors(run_tcp_ranks(GetParam(), [](Transport& t) {
    exact_collectives(t, {1, 1003}, {});
    gather_and_broadcast(t, {0, 5, 1003}, {.piece_bytes = 100});
    same_bits(t, 10'007, {.piece_bytes = 4096});
  }));
}

// Two groups have the same ranks: the messages of one group must not reach the other.
TEST(TcpTransport, GroupsOfTheSameRanksAreApart) {
  expect_no_errors(run_tcp_ranks(2, [](Transport& t) {
    const auto first = t.split({0, 1}), second = t.split({0, 1});
    char sent[] = {1, 2}, got[] = {0, 0};
    // Rank 1 connects for the second group first, while rank 0 waits for the first one.
    std::vector<Transport*> groups = {second.get(), first.get()};
    if (t.rank() == 0) {
      std::swap(groups[0], groups[1]);
    }
    for (Transport* group : groups) {
      const int i = group == second.get() ? 1 : 0;
      group->set_timeout(10);
      group->group_start();
      t.rank() == 1 ? group->send(0, &sent[i], 1) : group->receive(1, &got[i], 1);
      group->wait(group->group_end());
    }
    EXPECT_TRUE(t.rank() == 1 || (got[0] == 1 && got[1] == 2)) << int{got[0]} << int{got[1]};
  }));
}

TEST(TcpTransportErrors, ARankWithAnotherSecretIsNotHeard) {
  char got = 0;
  const auto errors = run_tcp_ranks(
      2,
      [&](Transport& t) {
        char sent = 1;
        t.set_timeout(t.rank() == 0 ? 0.3 : 5);
        t.group_start();
        t.rank() == 1 ? t.send(0, &sent, 1) : t.receive(1, &got, 1);
        t.wait(t.group_end());
      },
      [](int rank) { return rank == 0 ? "secret" : "Secret"; });
  EXPECT_EQ(errors[0], "no answer in 0.3 s");
  EXPECT_EQ(got, 0);
}

TEST(TcpTransportErrors, ALateRankEndsTheWait) {
  const auto errors = run_tcp_ranks(2, [](Transport& t) {
    pass_on(t);
    wait_for_a_late_rank(t);
  });
  EXPECT_EQ(errors[0], "no answer in 0.1 s");
}

TEST(TcpTransportErrors, ARankThatLeftEndsTheWait) {
  const auto errors = run_tcp_ranks(2, [](Transport& t) {
    pass_on(t);
    char byte = 0;
    if (t.rank() == 0) {
      t.group_start();
      t.receive(1, &byte, 1);
      t.wait(t.group_end());
    }
  });
  EXPECT_EQ(errors[0], "rank 1 has left");
}

TEST(TcpTransportErrors, StrangersAreNotHeard) {
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = listener.port();
  const auto end =
      make_tcp_transport(0, {{"here", "127.0.0.1", port, 0}, {"here", "127.0.0.1", 1, 0}},
                         std::move(listener), key_of("secret"));
  Socket stranger = begin_connect("127.0.0.1", port);
  const std::string garbage(200, 'g');
  stranger.send_all(garbage.data(), garbage.size(), monotonic_seconds() + 5);
  end->set_timeout(0.3);
  char byte = 0;
  end->group_start();
  end->receive(1, &byte, 1);
  EXPECT_THROW(end->wait(end->group_end()), TransportError);
  EXPECT_EQ(byte, 0);
}

// Strangers are also dropped in time if no link opens any more and nobody uses the transport.
TEST(TcpTransportErrors, StrangersDoNotOutstayTheLastLink) {
  Socket listeners[] = {listen_at("127.0.0.1", 0), listen_at("127.0.0.1", 0)};
  const int port = listeners[0].port();
  const Roster roster = {{"here", "127.0.0.1", port, 0},
                         {"here", "127.0.0.1", listeners[1].port(), 0}};
  Socket stranger = begin_connect("127.0.0.1", port);
  ASSERT_TRUE(is_connected(stranger));
  std::unique_ptr<Transport> ends[2];
  for (int rank = 0; rank < 2; ++rank) {
    ends[rank] = make_tcp_transport(rank, roster, std::move(listeners[rank]), key_of("secret"));
  }
  std::thread other([&] { pass_on(*ends[1]); });
  pass_on(*ends[0]);
  other.join();
  char byte = 0;
  EXPECT_TRUE(stranger.wait_readable(1));
  EXPECT_EQ(stranger.receive_some(&byte, 1), -1);  // it was closed
}

TEST(Sockets, ErrorsNameTheAddress) {
  const Socket taken = listen_at("127.0.0.1", 0);
  EXPECT_EQ(error_of([&] { listen_at("127.0.0.1", taken.port()); }),
            text("listening at 127.0.0.1 port ", taken.port(),
                 ": Address already in use; BINADE_PORT names another port"));
}

}  // namespace
}  // namespace binade::dist::tcp_transport_test
