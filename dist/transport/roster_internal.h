// What ranks need to find each other: made by the rendezvous (dist/job/control_internal.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade::dist {

struct Peer {
  std::string host;     // name, for messages
  std::string address;  // where it listens; empty: where rank 0 is
  int port = 0;         // for data
  int pid = 0;
};

using Roster = std::vector<Peer>;  // by rank

}  // namespace binade::dist
