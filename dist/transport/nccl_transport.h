// A transport between the memories of GPUs, over NCCL. Messages are in device memory and run on the
// transport's own stream, after the work queued on the calling thread's current stream when they
// were posted. Only wait() blocks the host.
#pragma once
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// Why this process cannot use NCCL; empty if it can.
std::string nccl_missing();
std::string nccl_path();  // of the library; empty if there is none

// Makes the NCCL transport of this rank, for its device. The ranks exchange NCCL's id by the
// transport `meeting` and keep their ranks. Collective. Throws TransportError if the ranks do not
// come together within meeting->timeout() seconds, and Error if there is no NCCL.
std::unique_ptr<Transport> make_nccl_transport(std::shared_ptr<Transport> meeting, Device device);

}  // namespace binade::dist
