// A transport between threads of one process: for tests, and to study a ring. A receiver copies
// directly from the sender's memory.
#pragma once
#include <binade/dist/transport/transport.h>

namespace binade::dist {

class ThreadHub;

// State that the ranks of a group share.
std::shared_ptr<ThreadHub> make_thread_hub(int size);
// The end of one rank; only its thread may use and destroy it. After that the rank is gone: ranks
// that wait for it get a TransportError.
std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<ThreadHub> hub, int rank);

}  // namespace binade::dist
