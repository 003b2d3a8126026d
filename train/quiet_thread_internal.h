// Threads that work for a run while it trains. Internal to train.
#pragma once
#include <functional>
#include <string>
#include <thread>

namespace binade::train {

// Starts a thread that gets no signals: these are for the threads of the program. `purpose` ends
// the error if the system has no thread: "WHO: cannot start the thread that " + purpose.
std::thread start_quiet_thread(const std::string& who, const std::string& purpose,
                               std::function<void()> work);

}  // namespace binade::train
