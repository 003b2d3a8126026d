#include <binade/dist/job/control_internal.h>
#include <binade/kernels/base/error.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace binade::dist {
namespace {

// The answer that a joining rank gets.
std::string answer(int port, int rank, int size, const ControlOptions& options) {
  try {
    const ControlClient client({.host = "127.0.0.1", .port = port, .secret = "secret"}, rank, size,
                               1, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "welcome";
}

TEST(Control, TheVerdictWaitsForRankZero) {
  const ControlOptions options{.rendezvous_seconds = 5};
  ControlServer server(listen_at("127.0.0.1", 0, 3), 3, "secret", options);
  const char* cause = "rendezvous: got rank 1 of 4, expected ranks of 3";
  EXPECT_EQ(answer(server.port(), 1, 4, options), cause);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // nobody is there any more
  EXPECT_NE(answer(server.port(), 0, 3, options).find(cause), std::string::npos);
}

}  // namespace
}  // namespace binade::dist
