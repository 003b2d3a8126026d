#include <binade/dist/transport/frames_internal.h>

#include <algorithm>
#include <cstring>

namespace binade::dist {
namespace {

constexpr uint32_t kMagic = 0x32444e42;  // "BND2"
constexpr double kWriteSeconds = 2;

struct Prefix {
  uint32_t magic, type, bytes;
};

std::string wire_bytes(FrameType type, std::string_view bytes) {
  const Prefix prefix{kMagic, static_cast<uint32_t>(type), static_cast<uint32_t>(bytes.size())};
  std::string out(bytes_of(prefix));
  return out += bytes;
}

}  // namespace

void FrameSocket::write(FrameType type, std::string_view bytes) {
  const std::string out = wire_bytes(type, bytes);
  socket_.send_all(out.data(), out.size(), monotonic_seconds() + kWriteSeconds);
}

void FrameSocket::write_now(FrameType type, std::string_view bytes) {
  const std::string out = wire_bytes(type, bytes);
  if (socket_.send_some(out.data(), out.size()) != static_cast<int64_t>(out.size())) {
    throw SocketError("the other end does not read");
  }
}

bool FrameSocket::read(Frame& frame) {
  for (;;) {
    Prefix prefix{};
    size_t wanted = sizeof prefix;
    if (received_.size() >= sizeof prefix) {
      std::memcpy(&prefix, received_.data(), sizeof prefix);
      if (prefix.magic != kMagic || prefix.type > static_cast<uint32_t>(FrameType::goodbye)) {
        throw SocketError("the other end does not speak this protocol");
      }
      if (prefix.bytes > most_) {
        throw SocketError(text("the other end sent a message of ", prefix.bytes,
                               " bytes, expected at most ", most_));
      }
      wanted += prefix.bytes;
    }
    if (received_.size() == wanted) {
      frame.type = static_cast<FrameType>(prefix.type);
      frame.bytes = received_.substr(sizeof prefix);
      received_ = {};
      return true;
    }
    char part[4096];
    const int64_t bytes =
        socket_.receive_some(part, std::min(sizeof part, wanted - received_.size()));
    if (bytes < 0) {
      throw SocketError("the other end is gone");
    }
    if (bytes == 0) {
      return false;
    }
    received_.append(part, static_cast<size_t>(bytes));
  }
}

Frame FrameSocket::read_until(double deadline) {
  Frame frame;
  while (!read(frame)) {
    if (!socket_.wait_readable(deadline - monotonic_seconds())) {
      throw SocketError("the other end does not answer");
    }
  }
  return frame;
}

}  // namespace binade::dist
