// A transport between processes over TCP: needs no MPI. One connection per pair of ranks that talk
// and per group, made when it is first used: the higher rank connects, the lower accepts.
#pragma once
#include <binade/dist/transport/roster_internal.h>
#include <binade/dist/transport/socket_internal.h>
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// `listener` is the socket of this rank's port in the roster. Connections that do not know the
// secret are closed.
std::unique_ptr<Transport> make_tcp_transport(int rank, Roster roster, Socket listener,
                                              const std::string& secret);

}  // namespace binade::dist
