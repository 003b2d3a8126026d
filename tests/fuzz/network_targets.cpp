// Frames of the control channel, as they come from a socket.
#include <binade/dist/job/control_frames_internal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

template <class T>
void read_value(const std::string& bytes) {
  const T value = dist::value_of<T>(bytes);
  require(dist::bytes_of(value) == bytes, "a message has the bytes of its frame");
}

void check_frame(const dist::Frame& frame) {
  require(frame.type <= dist::FrameType::goodbye, "a frame has a type of the protocol");
  if (frame.type == dist::FrameType::proof) {
    read_value<dist::JoinRequest>(frame.bytes);
  } else if (frame.type == dist::FrameType::state) {
    read_value<dist::RankProgress>(frame.bytes);
    const auto where = dist::value_of<dist::RankProgress>(frame.bytes);
    dist::rank_table("fuzz", {{0, where, "", ""}, {1, {}, "dead", "pid 1"}});
  } else if (frame.type == dist::FrameType::roster) {
    dist::parse_roster(frame.bytes, 3);
  }
}

}  // namespace

// The other end sends the bytes and waits: a frame that is not whole yet is no error.
void parse_control_frames(Bytes bytes) {
  constexpr size_t kMost = 1 << 16;  // what a socket holds
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "sockets can be made");
  dist::FrameSocket frames(dist::Socket(ends[0]), kMost);
  dist::Socket other(ends[1]);
  other.send_some(bytes.data(), std::min(bytes.size(), kMost));
  size_t read = 0;
  for (dist::Frame frame; frames.read(frame); check_frame(frame)) {
    read += frame.bytes.size();
    require(read <= bytes.size(), "frames hold what was sent");
  }
}

// The number of ranks, then the roster.
void parse_roster(Bytes bytes) {
  if (bytes.empty()) {
    return;
  }
  const int size = bytes[0] % 8 + 1;
  const dist::Roster roster = dist::parse_roster(text_of(bytes.subspan(1)), size);
  require(static_cast<int>(roster.size()) == size, "every rank is in the roster");
  for (const dist::Peer& peer : roster) {
    require(!peer.address.empty() && peer.port >= 0 && peer.port < 65536 && peer.pid >= 0,
            "a rank has an address");
  }
  dist::parse_roster(dist::roster_text(roster), size);
}

}  // namespace binade::fuzz
