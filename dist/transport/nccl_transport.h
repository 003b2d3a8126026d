// A transport between the memories of GPUs, over NCCL. Messages lie on the device and travel on a
// stream of the transport, behind what the calling thread's current stream holds when they are
// posted. Nothing waits for the host but wait().
#pragma once
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// Why this process cannot use NCCL; empty where it can.
std::string nccl_missing();

// The rank of `meeting`, a transport over which the ranks tell each other NCCL's id, with its
// device. Collective. Throws TransportError where the ranks do not come together within
// meeting->timeout() seconds, and Error where there is no NCCL.
std::unique_ptr<Transport> make_nccl_transport(std::shared_ptr<Transport> meeting, Device device);

}  // namespace binade::dist
