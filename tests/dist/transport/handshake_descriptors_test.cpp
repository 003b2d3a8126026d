// Tests the listener of a job whose process has no file descriptor left.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/dist/transport/handshake_ends.h"

namespace binade::dist::handshake_descriptors_test {
namespace {

// Lowers the limit of file descriptors to those in use.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

// The rank has its socket, but the listener has not accepted it.
bool stands_at(const AuthenticatedListener& listener, Connector& rank) {
  return until([&] {
    rank.advance();
    pollfd waiting{listener.socket().file(), POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  });
}

// A rank that connects while no descriptor is left takes that of a stranger.
TEST(Strangers, GiveTheirDescriptorToARank) {
  auto listener = listener_of();
  Raw silent(listener);
  const auto heard = [&] {
    listener.advance();
    return listener.strangers() == 1;
  };
  ASSERT_TRUE(until(heard));
  auto rank = connector_to(listener);
  ASSERT_TRUE(stands_at(listener, rank));
  const NoMoreFiles none;
  EXPECT_TRUE(meet(listener, rank).caller);
  EXPECT_FALSE(silent.hear(listener));
}

// Without strangers the rank waits, and its first attempt succeeds once a descriptor is free.
TEST(Strangers, WithoutDescriptorsARankWaits) {
  auto listener = listener_of();
  auto rank = connector_to(listener);
  ASSERT_TRUE(stands_at(listener, rank));
  {
    const NoMoreFiles none;
    const Meeting meeting = meet(listener, rank, 0.3);
    EXPECT_FALSE(meeting.connected || meeting.caller);
    EXPECT_EQ(meeting.refusal, "");
  }
  EXPECT_TRUE(meet(listener, rank).caller);
}

}  // namespace
}  // namespace binade::dist::handshake_descriptors_test
