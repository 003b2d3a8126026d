#include <binade/dist/job/control_frames_internal.h>

#include <cstring>

namespace binade::dist {
namespace {

constexpr uint32_t kMagic = 0x31444e42;  // "BND1"
constexpr size_t kMostBytes = size_t(1) << 24;
constexpr double kWriteSeconds = 5;

struct Prefix {
  uint32_t magic, type, bytes;
};

}  // namespace

void FrameSocket::write(FrameType type, std::string_view bytes) {
  const Prefix prefix{kMagic, static_cast<uint32_t>(type), static_cast<uint32_t>(bytes.size())};
  std::string out(bytes_of(prefix));
  out += bytes;
  socket_.send_all(out.data(), out.size(), monotonic_seconds() + kWriteSeconds);
}

bool FrameSocket::read(Frame& frame) {
  for (;;) {
    Prefix prefix{};
    if (received_.size() >= sizeof prefix) {
      std::memcpy(&prefix, received_.data(), sizeof prefix);
      if (prefix.magic != kMagic || prefix.bytes > kMostBytes ||
          prefix.type > static_cast<uint32_t>(FrameType::goodbye)) {
        throw SocketError("the other end does not speak this protocol");
      }
      if (received_.size() >= sizeof prefix + prefix.bytes) {
        frame.type = static_cast<FrameType>(prefix.type);
        frame.bytes = received_.substr(sizeof prefix, prefix.bytes);
        received_.erase(0, sizeof prefix + prefix.bytes);
        return true;
      }
    }
    char part[4096];
    const int64_t bytes = socket_.receive_some(part, sizeof part);
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

template <class T>
T value_of(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) {
    throw SocketError("the other end does not speak this protocol");
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
template JoinRequest value_of<JoinRequest>(const std::string&);
template RankProgress value_of<RankProgress>(const std::string&);

}  // namespace binade::dist
