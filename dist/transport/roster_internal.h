// The addresses by which ranks find each other; the rendezvous (dist/job/control_internal.h)
// collects them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade::dist {

struct Peer {
  std::string host;     // name, for messages
  std::string address;  // where it listens for data, numeric
  int port = 0;         // 0: it does not
  int pid = 0;
};

using Roster = std::vector<Peer>;  // by rank

}  // namespace binade::dist
