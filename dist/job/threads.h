// Ranks as threads of one process: for tests, and to study how a distributed program behaves.
#pragma once
#include <binade/dist/collective/communicator.h>

#include <functional>

namespace binade::dist {

// Runs body as ranks 0 .. size - 1, each on its own thread, and waits for all. If ranks throw, it
// throws the error of the rank that failed first, not of those that failed because of it.
void run_threads(int size, const std::function<void(Communicator&)>& body,
                 const CommunicatorOptions& options = {});

}  // namespace binade::dist
