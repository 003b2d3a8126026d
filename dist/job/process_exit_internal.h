// The only place where the library ends its process: for a rank that cannot be stopped in another
// way.
#pragma once
#include <string>

namespace binade::dist {

// Exit status if the job failed elsewhere, or a rank was stuck.
inline constexpr int kJobFailed = 75;

// Writes the text to standard error and ends the process without running destructors or atexit
// functions, which might wait for a rank that is gone.
[[noreturn]] void end_process(int status, const std::string& text);

// From now on SIGTERM ends the process a second later if it has no handler. mpirun sends it to all
// processes as soon as one is gone, and they first have to report which one that was, and where.
void delay_termination();

}  // namespace binade::dist
