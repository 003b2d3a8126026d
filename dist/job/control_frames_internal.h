// The messages of the control channel (internal).
#pragma once
#include <binade/dist/job/progress.h>
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
// Throws SocketError if the size differs.
template <class T>
T value_of(const std::string& bytes);

}  // namespace binade::dist
