// Frames: the messages of the control channel, and of the handshake that begins every connection of
// a job (dist/transport/handshake_internal.h). A frame is a prefix of 12 bytes (magic, type,
// length) and its bytes.
#pragma once
#include <binade/dist/transport/socket_internal.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace binade::dist {

enum class FrameType : uint32_t {
  hello,      // handshake, from the connecting end: who it is
  challenge,  // handshake, from the accepting end: its proof
  proof,      // handshake, from the connecting end: its proof, and what it says first
  welcome,    // handshake, from the accepting end: the proof is right
  roster,     // to all: where every rank is
  refused,    // to one: why
  query,      // to all: asks for their state
  state,      // to the server: RankProgress
  failure,    // to the server: text
  verdict,    // to all: text
  goodbye,    // to the server
};

struct Frame {
  FrameType type{};
  std::string bytes;
};

// A socket that reads frames as they arrive and writes them at once. It never reads beyond the
// frame that read() returns.
class FrameSocket {
 public:
  FrameSocket() = default;
  // A frame with more than `most` bytes is an error before memory is allocated for it.
  FrameSocket(Socket socket, size_t most) : socket_(std::move(socket)), most_(most) {}
  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }
  void set_most(size_t bytes) { most_ = bytes; }

  // Throws SocketError if the other end is gone, does not read, or sent something that is no frame.
  void write(FrameType type, std::string_view bytes = {});
  // The same without waiting: throws if not all of it can be sent at once.
  void write_now(FrameType type, std::string_view bytes = {});
  bool read(Frame& frame);  // false: no whole frame yet
  Frame read_until(double deadline);

 private:
  Socket socket_;
  std::string received_;  // of the frame that is not whole yet
  size_t most_ = 0;
};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Copies a text into a field of a message, cut if it is too long; it ends with 0.
template <size_t kSize>
void put_text(char (&to)[kSize], std::string_view from) {
  const size_t bytes = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), bytes);
  to[bytes] = 0;
}

}  // namespace binade::dist
