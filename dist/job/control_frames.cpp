#include <binade/dist/job/control_frames_internal.h>

#include <charconv>
#include <cmath>
#include <cstring>

namespace binade::dist {
namespace {

constexpr uint32_t kMagic = 0x31444e42;  // "BND1"
constexpr size_t kMostBytes = size_t(1) << 24;
constexpr double kWriteSeconds = 5;

struct Prefix {
  uint32_t magic, type, bytes;
};

// Takes the text before the next `separator` and the separator; false if there is none.
bool take_field(std::string_view& rest, char separator, std::string_view& field) {
  const size_t end = rest.find(separator);
  if (end == rest.npos) {
    return false;
  }
  field = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

bool parse_number(std::string_view digits, int least, int most, int& value) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  return error == std::errc() && stop == end && value >= least && value <= most;
}

bool parse_peer(std::string_view line, Peer& peer) {
  std::string_view host, address, port;
  if (!take_field(line, ' ', host) || !take_field(line, ' ', address) ||
      !take_field(line, ' ', port)) {
    return false;
  }
  peer.host = host;
  peer.address = address;
  constexpr int kMostPid = 1 << 30;
  return !address.empty() && parse_number(port, 0, 65535, peer.port) &&
         parse_number(line, 0, kMostPid, peer.pid);
}

template <class T>
T value_from(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) {
    throw SocketError("the other end does not speak this protocol");
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

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

std::string roster_text(const Roster& roster) {
  std::string lines;
  for (const Peer& peer : roster) {
    lines += text(peer.host, " ", peer.address, " ", peer.port, " ", peer.pid, "\n");
  }
  return lines;
}

Roster parse_roster(std::string_view lines, const std::string& address, int size) {
  Roster roster;
  std::string_view line;
  Peer peer;
  while (static_cast<int>(roster.size()) < size && take_field(lines, '\n', line) &&
         parse_peer(line, peer)) {
    if (peer.address == "-") {
      peer.address = address;
    }
    roster.push_back(peer);
  }
  if (static_cast<int>(roster.size()) != size || !lines.empty()) {
    throw SocketError(text("rank 0 sent no roster of ", size, " ranks"));
  }
  return roster;
}

template <>
JoinRequest value_of<JoinRequest>(const std::string& bytes) {
  return value_from<JoinRequest>(bytes);
}

template <>
RankProgress value_of<RankProgress>(const std::string& bytes) {
  const auto where = value_from<RankProgress>(bytes);
  const bool ends = std::memchr(where.group, 0, sizeof where.group) != nullptr;
  if (!ends || !is_valid(where.signature) || !std::isfinite(where.seconds)) {
    throw SocketError("the other end sent a state that no rank has");
  }
  return where;
}

}  // namespace binade::dist
