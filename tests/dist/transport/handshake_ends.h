// Runs both ends of a handshake in one thread, for tests.
#pragma once
#include <binade/dist/transport/handshake_internal.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace binade::dist {

inline constexpr double kPatience = 10;
inline const Key kKey = derive_key("secret", "test"), kOtherKey = derive_key("Secret", "test");
inline constexpr Claim kClaim{.purpose = Purpose::data, .size = 4, .from = 3, .to = 1, .group = 77};

inline AuthenticatedListener listener_of(const Key& key = kKey, Purpose purpose = Purpose::data,
                                         int rank = 1) {
  return {listen_at("127.0.0.1", 0), key, purpose, rank};
}

inline Connector connector_to(const AuthenticatedListener& listener, const Key& key = kKey,
                              const Claim& claim = kClaim) {
  return {"127.0.0.1", listener.socket().port(), key, claim,
          [](const std::string& address) { return "I am at " + address; }};
}

// Runs `step` until it returns true or the time is over.
template <class F>
bool until(F&& step, double seconds = kPatience) {
  for (const double end = monotonic_seconds() + seconds; monotonic_seconds() < end;) {
    if (step()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

struct Meeting {
  bool connected = false;
  std::optional<Caller> caller;
  std::string refusal;
};

inline Meeting meet(AuthenticatedListener& listener, Connector& connector,
                    double seconds = kPatience) {
  Meeting meeting;
  until(
      [&] {
        for (Caller& caller : listener.advance()) {
          meeting.caller = std::move(caller);
        }
        try {
          meeting.connected = meeting.connected || connector.advance();
        } catch (const RefusedError& error) {
          meeting.refusal = error.what();
        }
        return (meeting.connected && meeting.caller) || !meeting.refusal.empty();
      },
      seconds);
  return meeting;
}

// A peer that can send anything.
class Raw {
 public:
  explicit Raw(const AuthenticatedListener& listener)
      : frames_(begin_connect("127.0.0.1", listener.socket().port()), 1000) {}

  void send(std::string_view bytes) {
    frames_.socket().send_all(bytes.data(), bytes.size(), monotonic_seconds() + kPatience);
  }
  void send(FrameType type, std::string_view bytes) { frames_.write(type, bytes); }
  // The next frame from the listener; none if it hangs up.
  std::optional<Frame> hear(AuthenticatedListener& listener) {
    std::optional<Frame> heard;
    EXPECT_TRUE(until([&] {
      admitted_ += listener.advance().size();
      try {
        Frame frame;
        if (frames_.read(frame)) {
          heard = frame;
        }
        return heard.has_value();
      } catch (const SocketError&) {
        return true;
      }
    }));
    return heard;
  }
  size_t admitted() const { return admitted_; }

 private:
  FrameSocket frames_;
  size_t admitted_ = 0;
};

}  // namespace binade::dist
