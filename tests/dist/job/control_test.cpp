#include <binade/dist/job/control_frames_internal.h>
#include <binade/dist/job/control_internal.h>
#include <binade/kernels/base/error.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace binade::dist::control_test {
namespace {

const Key kKey = derive_key("secret", "test");

// The answer that a joining rank receives.
std::string answer(int port, int rank, int size, const ControlOptions& options) {
  try {
    const ControlClient client({.host = "127.0.0.1", .port = port, .key = kKey}, rank, size, {},
                               options);
  } catch (const Error& error) {
    return error.what();
  }
  return "welcome";
}

TEST(Control, TheVerdictWaitsForRankZero) {
  const ControlOptions options{.rendezvous_seconds = 5};
  ControlServer server(listen_at("127.0.0.1", 0), 3, kKey, options);
  const char* cause = "rendezvous: got rank 1 of 4, expected ranks of 3";
  EXPECT_EQ(answer(server.port(), 1, 4, options), cause);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // by now there is no server
  EXPECT_NE(answer(server.port(), 0, 3, options).find(cause), std::string::npos);
}

// The server of a job with two ranks that have joined.
struct Joined {
  explicit Joined(const ControlOptions& options)
      : server(listen_at("127.0.0.1", 0), 2, kKey, options), port(server.port()) {
    const auto join = [&, this](int rank) {
      return std::make_unique<ControlClient>(
          ControlAddress{.host = "127.0.0.1", .port = port, .key = kKey}, rank, 2,
          [rank](const std::string& own) {
            return DataAddress{own, 100 + rank};
          },
          options);
    };
    std::thread other([&] { second = join(1); });
    first = join(0);
    other.join();
  }
  ControlServer server;
  int port;
  std::unique_ptr<ControlClient> first, second;
};

TEST(Control, TheRosterHoldsWhatTheRanksSaid) {
  Joined job({.rendezvous_seconds = 5});
  for (const ControlClient* client : {job.first.get(), job.second.get()}) {
    ASSERT_EQ(client->roster().size(), 2U);
    for (int rank = 0; rank < 2; ++rank) {
      const Peer& peer = client->roster()[static_cast<size_t>(rank)];
      EXPECT_EQ(peer.address, "127.0.0.1");
      EXPECT_EQ(peer.port, 100 + rank);
      EXPECT_EQ(peer.pid, getpid());
    }
  }
  EXPECT_EQ(job.first->data_key(), job.second->data_key());
  Joined other({.rendezvous_seconds = 5});  // same secret, other job
  EXPECT_NE(job.first->data_key(), other.first->data_key());
  // The server accepts nobody any more.
  EXPECT_NE(answer(job.port, 1, 2, {.rendezvous_seconds = 0.1}).find("Connection refused"),
            std::string::npos);
  for (Joined* every : {&job, &other}) {
    every->first->say_goodbye();
    every->second->say_goodbye();
    EXPECT_EQ(every->server.wait(), "");
  }
}

// Counters of collectives and steps near the 32-bit limits: reports keep all digits and know which
// rank is behind.
TEST(Control, CountersDoNotWrap) {
  constexpr uint64_t kLimit = uint64_t{1} << 32;
  for (const uint64_t limit : {kLimit / 2, kLimit}) {
    Progress ahead, behind;
    behind.enter("world", limit - 1, {});
    behind.set_step(static_cast<int64_t>(limit) - 2);
    behind.leave();
    ahead.enter("world", limit, {});
    ahead.set_step(static_cast<int64_t>(limit) + 3);
    const RankProgress now = ahead.now();
    const auto received = value_of<RankProgress>(std::string(bytes_of(now)));
    EXPECT_EQ(received.sequence, limit);
    EXPECT_EQ(received.step, static_cast<int64_t>(limit) + 3);
    const std::vector<RankReport> reports = {{0, received, "", ""}, {1, behind.now(), "", ""}};
    const std::string table = rank_table("cause", reports);
    EXPECT_NE(table.find(text("#", limit, " ")), std::string::npos) << table;
    EXPECT_NE(table.find(text("#", limit - 1, " ")), std::string::npos) << table;
    EXPECT_NE(table.find(text(limit + 3)), std::string::npos) << table;
    EXPECT_NE(table.find(text("rank 1: after #", limit - 1)), std::string::npos) << table;
  }
}

TEST(Control, ARankThatComesTwiceEndsTheJob) {
  const ControlOptions options{.rendezvous_seconds = 5};
  ControlServer server(listen_at("127.0.0.1", 0), 3, kKey, options);
  std::string first;
  std::thread one([&] { first = answer(server.port(), 1, 3, options); });
  EXPECT_NE(answer(server.port(), 1, 3, options).find("rendezvous: rank 1 came twice"),
            std::string::npos);
  EXPECT_NE(answer(server.port(), 0, 3, options).find("rank 1 came twice"), std::string::npos);
  one.join();
  EXPECT_NE(first.find("rank 1 came twice"), std::string::npos);
}

TEST(Control, RankZeroDoesNotWaitForEverForARankThatStays) {
  Joined job({.rendezvous_seconds = 5, .late_seconds = 0.2, .grace_seconds = 30});
  job.first->say_goodbye();
  EXPECT_NE(job.server.wait().find("rank 0 has ended, but rank 1 did not in the 0.2 s since"),
            std::string::npos);
}

TEST(Control, ARankThatDiesAfterRankZeroLeftIsNamed) {
  Joined job({.rendezvous_seconds = 5});
  job.first->say_goodbye();
  job.second.reset();  // ends without a goodbye
  EXPECT_NE(job.server.wait().find("rank 1"), std::string::npos);
}

}  // namespace
}  // namespace binade::dist::control_test
