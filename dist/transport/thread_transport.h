// A transport between threads of one process: for tests, and to see a ring at work. A receiver
// copies straight out of the sender's memory.
#pragma once
#include <binade/dist/transport/transport.h>

namespace binade::dist {

class ThreadHub;

// What the ranks of a group share.
std::shared_ptr<ThreadHub> make_thread_hub(int size);
// The end of one rank, to be used and destroyed by its thread. A rank whose end is destroyed is
// gone: those that wait for it get a TransportError.
std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<ThreadHub> hub, int rank);

}  // namespace binade::dist
