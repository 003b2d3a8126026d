// The messages of the control channel (internal).
#pragma once
#include <binade/dist/job/progress.h>
#include <binade/dist/transport/roster_internal.h>
#include <binade/dist/transport/socket_internal.h>

#include <string>
#include <string_view>

namespace binade::dist {

enum class FrameType : uint32_t {
  hello,    // to the server: JoinRequest
  roster,   // to all: Peer lines
  refused,  // to one: why
  query,    // to all: where are you?
  state,    // to the server: RankProgress
  failure,  // to the server: text
  verdict,  // to all: text
  goodbye,  // to the server
};

struct JoinRequest {
  int32_t rank, size, pid, data_port;
  char host[64], secret[64];
};

struct Frame {
  FrameType type;
  std::string bytes;
};

// A socket that reads frames as they arrive and writes them at once.
class FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(Socket socket) : socket_(std::move(socket)) {}
  Socket& socket() { return socket_; }

  // Throws SocketError if the other end is gone, does not read, or sent something that is no frame.
  void write(FrameType type, std::string_view bytes = {});
  bool read(Frame& frame);  // false: no whole frame yet
  Frame read_until(double deadline);

 private:
  Socket socket_;
  std::string received_;
};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
// Throws SocketError if the size differs, or if the values are those of no rank.
template <class T>
T value_of(const std::string& bytes);
template <>
JoinRequest value_of<JoinRequest>(const std::string& bytes);
template <>
RankProgress value_of<RankProgress>(const std::string& bytes);

// The roster frame: a line "HOST ADDRESS PORT PID" per rank, where the address - stands for the one
// of rank 0. parse_roster() puts `address` there; it throws SocketError unless the text is that of
// `size` ranks.
std::string roster_text(const Roster& roster);
Roster parse_roster(std::string_view text, const std::string& address, int size);

}  // namespace binade::dist
