#include <binade/dist/job/control_frames_internal.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace binade::dist {
namespace {

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

std::string roster_text(const Roster& roster) {
  std::string lines;
  for (const Peer& peer : roster) {
    lines += text(peer.host, " ", peer.address, " ", peer.port, " ", peer.pid, "\n");
  }
  return lines;
}

Roster parse_roster(std::string_view lines, int size) {
  Roster roster;
  std::string_view line;
  Peer peer;
  while (static_cast<int>(roster.size()) < size && take_field(lines, '\n', line) &&
         parse_peer(line, peer)) {
    roster.push_back(peer);
  }
  if (static_cast<int>(roster.size()) != size || !lines.empty()) {
    throw SocketError(text("rank 0 sent no roster of ", size, " ranks"));
  }
  return roster;
}

template <>
JoinRequest value_of<JoinRequest>(const std::string& bytes) {
  const auto request = value_from<JoinRequest>(bytes);
  const auto is_word = [](const char* text, size_t most) {
    const size_t length = strnlen(text, most);
    return length < most &&
           std::all_of(text, text + length, [](char c) { return c > ' ' && c < 127; });
  };
  if (request.pid < 0 || request.data_port < 0 || request.data_port > 65535 ||
      !is_word(request.host, sizeof request.host) ||
      !is_word(request.address, sizeof request.address) || request.address[0] == 0) {
    throw SocketError("the other end sent a request that no rank makes");
  }
  return request;
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
