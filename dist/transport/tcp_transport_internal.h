// A transport between processes over TCP, without MPI. There is one connection per group and pair
// of ranks that exchange messages, made at first use: the higher rank connects, the lower one
// accepts. Both ends prove that they know the key (dist/transport/handshake_internal.h).
#pragma once
#include <binade/dist/transport/handshake_internal.h>
#include <binade/dist/transport/roster_internal.h>
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// `listener` is the socket of this rank's port in the roster.
std::unique_ptr<Transport> make_tcp_transport(int rank, Roster roster, Socket listener,
                                              const Key& key);

}  // namespace binade::dist
