// Tests the handshake between two ends in one thread: neither end ever blocks.
#include <binade/dist/transport/handshake_internal.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <tests/support/error_of.h>

#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/dist/transport/handshake_ends.h"

// Replaces the system's name service: slow.test has an address after some seconds, none.test has
// none. The system's names are not looked up.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const std::string host = name ? name : "";
  if (host == "slow.test") {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  } else if (host == "none.test") {
    return EAI_NONAME;
  }
  using Function = int(const char*, const char*, const addrinfo*, addrinfo**);
  static auto* const system = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return system("127.0.0.1", service, hints, found);
}

namespace binade::dist::handshake_test {
namespace {

// The frames of an honest connecting end, recorded by a relay between the ends.
std::vector<Frame> recorded(AuthenticatedListener& listener) {
  Socket relay = listen_at("127.0.0.1", 0);
  Connector honest("127.0.0.1", relay.port(), kKey, kClaim);
  FrameSocket inner(begin_connect("127.0.0.1", listener.socket().port()), 1000), outer;
  std::vector<Frame> frames;
  EXPECT_TRUE(until([&] {
    listener.advance();
    int error = 0;
    if (Socket socket = accept_from(relay, error)) {
      outer = FrameSocket(std::move(socket), 1000);
    }
    Frame frame;
    if (outer.socket() && outer.read(frame)) {
      frames.push_back(frame);
      inner.write(frame.type, frame.bytes);
    }
    if (outer.socket() && inner.read(frame)) {
      outer.write(frame.type, frame.bytes);
    }
    return honest.advance();
  }));
  return frames;
}

TEST(Handshake, BringsTheClaimAndTheFirstMessage) {
  auto listener = listener_of();
  auto connector = connector_to(listener);
  const Meeting meeting = meet(listener, connector);
  ASSERT_TRUE(meeting.connected && meeting.caller);
  EXPECT_EQ(bytes_of(meeting.caller->claim), bytes_of(kClaim));
  EXPECT_EQ(meeting.caller->message, "I am at 127.0.0.1");
  EXPECT_EQ(listener.strangers(), 0U);
  int no_delay = 0;
  socklen_t bytes_of_it = sizeof no_delay;
  ::getsockopt(meeting.caller->frames.socket().file(), IPPROTO_TCP, TCP_NODELAY, &no_delay,
               &bytes_of_it);
  EXPECT_NE(no_delay, 0);
  FrameSocket end = connector.take();
  const_cast<Caller&>(*meeting.caller).frames.socket().send_all("raw", 3, monotonic_seconds() + 1);
  char bytes[3] = "";
  EXPECT_TRUE(until([&] { return end.socket().receive_some(bytes, 3) == 3; }));  // nothing is lost
}

TEST(Handshake, AnotherSecretIsRefused) {
  auto listener = listener_of();
  auto connector = connector_to(listener, kOtherKey);
  const Meeting meeting = meet(listener, connector);
  EXPECT_FALSE(meeting.caller);
  EXPECT_NE(meeting.refusal.find("the secret is another one"), std::string::npos);
}

TEST(Handshake, AClaimForAnotherPortIsNotHeard) {
  auto listener = listener_of();
  Claim other_rank = kClaim, control = kClaim;
  other_rank.to = 2;
  control.purpose = Purpose::control;
  for (const Claim& claim : {other_rank, control}) {
    auto connector = connector_to(listener, kKey, claim);
    const Meeting meeting = meet(listener, connector, 0.1);
    EXPECT_FALSE(meeting.connected || meeting.caller || !meeting.refusal.empty());
  }
}

// A relay sends all recorded frames again.
TEST(Handshake, AReplayIsNotHeard) {
  auto listener = listener_of();
  const std::vector<Frame> frames = recorded(listener);
  ASSERT_EQ(frames.size(), 2U);
  Raw replay(listener);
  replay.send(frames[0].type, frames[0].bytes);
  ASSERT_EQ(replay.hear(listener)->type, FrameType::challenge);
  replay.send(frames[1].type, frames[1].bytes);
  EXPECT_FALSE(replay.hear(listener));
  EXPECT_EQ(replay.admitted(), 0U);
}

TEST(Handshake, AReflectedProofIsNotHeard) {
  auto listener = listener_of();
  const std::vector<Frame> frames = recorded(listener);
  Raw mirror(listener);
  mirror.send(frames[0].type, frames[0].bytes);
  const Frame challenge = *mirror.hear(listener);
  mirror.send(FrameType::proof, std::string_view(challenge.bytes).substr(sizeof(Nonce)));
  EXPECT_FALSE(mirror.hear(listener));
  EXPECT_EQ(mirror.admitted(), 0U);
}

TEST(Handshake, AnAlteredClaimIsRefused) {
  auto listener = listener_of();
  const std::vector<Frame> frames = recorded(listener);
  for (size_t byte = 0; byte < sizeof(Claim) + sizeof(Nonce) + sizeof(Sha256Digest); byte += 4) {
    std::string hello = frames[0].bytes;
    hello[byte] = static_cast<char>(hello[byte] ^ 1);
    Raw raw(listener);
    raw.send(FrameType::hello, hello);
    const auto answer = raw.hear(listener);
    ASSERT_TRUE(answer) << byte;
    EXPECT_EQ(answer->type, FrameType::refused) << byte;
  }
}

TEST(Handshake, AnAlteredFirstMessageIsNotHeard) {
  auto listener = listener_of();
  Socket relay = listen_at("127.0.0.1", 0);
  Connector honest("127.0.0.1", relay.port(), kKey, kClaim,
                   [](const std::string&) { return "port 5"; });
  Raw inner(listener);
  FrameSocket outer;
  std::optional<Frame> answer;
  EXPECT_TRUE(until([&] {
    honest.advance();
    int error = 0;
    if (Socket socket = accept_from(relay, error)) {
      outer = FrameSocket(std::move(socket), 1000);
    }
    Frame frame;
    if (!outer.socket() || !outer.read(frame)) {
      return false;
    }
    if (frame.type == FrameType::proof) {
      frame.bytes.back() = '6';
    }
    inner.send(frame.type, frame.bytes);
    answer = inner.hear(listener);
    if (answer) {
      outer.write(answer->type, answer->bytes);
    }
    return frame.type == FrameType::proof;
  }));
  EXPECT_FALSE(answer);
  EXPECT_EQ(inner.admitted(), 0U);
}

// The connecting end demands a proof, too.
TEST(Handshake, AnImpostorAtThePortIsRefused) {
  Socket impostor = listen_at("127.0.0.1", 0);
  for (const FrameType type : {FrameType::challenge, FrameType::welcome, FrameType::goodbye}) {
    Connector connector("127.0.0.1", impostor.port(), kKey, kClaim);
    FrameSocket end;
    std::string refusal;
    bool connected = false;
    until(
        [&] {
          int error = 0;
          if (Socket socket = accept_from(impostor, error)) {
            end = FrameSocket(std::move(socket), 1000);
            end.write(type, std::string(type == FrameType::challenge ? 64 : 0, 'x'));
          }
          try {
            connected = connector.advance();
          } catch (const RefusedError& error) {
            refusal = error.what();
          }
          return connected || !refusal.empty();
        },
        0.1);
    EXPECT_FALSE(connected);
    EXPECT_EQ(refusal.empty(), type != FrameType::challenge);
  }
}

TEST(Strangers, AreFewAndDoNotDisplaceARank) {
  auto listener = listener_of();
  auto rank = connector_to(listener);
  const auto has_come = [&] {
    rank.advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    listener.advance();
    return listener.strangers() == 1;
  };
  ASSERT_TRUE(until(has_come));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  listener.advance();
  std::vector<Raw> strangers;
  for (size_t i = 0; i < 3 * AuthenticatedListener::kMostStrangers; ++i) {
    strangers.emplace_back(listener);
    listener.advance();
    ASSERT_LE(listener.strangers(), AuthenticatedListener::kMostStrangers);
  }
  EXPECT_EQ(listener.strangers(), AuthenticatedListener::kMostStrangers);
  EXPECT_FALSE(strangers.front().hear(listener));  // the oldest was removed
  EXPECT_TRUE(meet(listener, rank).caller);
  EXPECT_EQ(rank.reason(), "no answer yet");  // at the first attempt
  auto late = connector_to(listener);
  EXPECT_TRUE(meet(listener, late).caller);
}

TEST(Strangers, HaveASecondAndFewBytes) {
  auto listener = listener_of();
  Raw silent(listener), slow(listener), large(listener), garbage(listener), empty(listener);
  const uint32_t prefix[] = {0x32444e42, 0, 16 << 20};
  large.send(bytes_of(prefix));
  garbage.send(std::string(100, 'g'));
  empty.send(FrameType::hello, "");
  EXPECT_FALSE(large.hear(listener));
  EXPECT_FALSE(garbage.hear(listener));
  EXPECT_FALSE(empty.hear(listener));
  EXPECT_EQ(listener.strangers(), 2U);
  const double start = monotonic_seconds();
  slow.send("B");
  double last = 0;  // start of the last call that left a stranger
  EXPECT_TRUE(until([&] {
    const double now = monotonic_seconds();
    listener.advance();
    last = listener.strangers() > 0 ? now : last;
    return listener.strangers() == 0;
  }));
  EXPECT_LT(last - start, 1);
  EXPECT_FALSE(silent.hear(listener));
  EXPECT_FALSE(slow.hear(listener));
}

// The system's name lookup has no deadline, so no call may wait for it.
TEST(Connectors, DoNotWaitForAName) {
  auto listener = listener_of();
  Connector connector("slow.test", listener.socket().port(), kKey, kClaim);
  const double start = monotonic_seconds();
  EXPECT_FALSE(connector.advance());
  EXPECT_LT(monotonic_seconds() - start, 0.4);
  EXPECT_EQ(connector.reason(), "the address of 'slow.test': no answer yet");
  EXPECT_TRUE(meet(listener, connector).connected);
  EXPECT_EQ(error_of([] { numeric_address("slow.test", 0.01); }),
            "the address of 'slow.test': no answer in 0.01 s");
  EXPECT_EQ(numeric_address("slow.test", kPatience), "127.0.0.1");
  Connector nowhere("none.test", 1, kKey, kClaim);
  const auto is_refused = [&] {
    nowhere.advance();
    return nowhere.reason() == "the address of 'none.test': Name or service not known";
  };
  EXPECT_TRUE(until(is_refused)) << nowhere.reason();
}

TEST(Connectors, TryAgainUntilSomebodyListens) {
  auto first = listener_of();
  const int port = first.socket().port();
  first.close();
  Connector connector("127.0.0.1", port, kKey, kClaim);
  EXPECT_FALSE(until([&] { return connector.advance(); }, 0.05));
  EXPECT_EQ(connector.reason(), "Connection refused");
  AuthenticatedListener listener(listen_at("127.0.0.1", port), kKey, Purpose::data, 1);
  EXPECT_TRUE(meet(listener, connector).connected);
}

}  // namespace
}  // namespace binade::dist::handshake_test
