// Ranks as threads of one process: for tests, and to see how a distributed program behaves.
#pragma once
#include <binade/dist/collective/communicator.h>

#include <functional>

namespace binade::dist {

// Runs body as ranks 0 .. size - 1, each on a thread of its own, and waits for all. If ranks throw,
// the error of the first that failed by itself is thrown here.
void run_threads(int size, const std::function<void(Communicator&)>& body,
                 const CommunicatorOptions& options = {});

}  // namespace binade::dist
