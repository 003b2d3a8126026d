// The addresses by which ranks find each other; the rendezvous (dist/job/control_internal.h)
// collects them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade::dist {

struct Peer {
  std::string host;     // name, for messages
  std::string address;  // where it listens; empty: the address of rank 0
  int port = 0;         // for data
  int pid = 0;
};

using Roster = std::vector<Peer>;  // by rank

}  // namespace binade::dist
