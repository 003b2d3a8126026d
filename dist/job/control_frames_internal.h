// The contents of the frames of the control channel (internal).
#pragma once
#include <binade/dist/job/progress.h>
#include <binade/dist/transport/frames_internal.h>
#include <binade/dist/transport/roster_internal.h>

#include <string>
#include <string_view>

namespace binade::dist {

// The first message of a rank; its rank and the size of its world are in the claim that it proved.
struct JoinRequest {
  int32_t pid = 0, data_port = 0;
  char host[64] = "";
  char address[16] = "";  // where it listens for data; "-": nowhere
};

// Throws SocketError if the size differs, or if the values are those of no rank.
template <class T>
T value_of(const std::string& bytes);
template <>
JoinRequest value_of<JoinRequest>(const std::string& bytes);
template <>
RankProgress value_of<RankProgress>(const std::string& bytes);

// The roster: a line "HOST ADDRESS PORT PID" per rank. parse_roster() throws SocketError unless the
// text lists `size` ranks.
std::string roster_text(const Roster& roster);
Roster parse_roster(std::string_view text, int size);

}  // namespace binade::dist
