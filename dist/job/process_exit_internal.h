// The one place where the library ends its process: for a rank that cannot be reached any other
// way.
#pragma once
#include <string>

namespace binade::dist {

// What a process exits with when its job failed elsewhere, or a rank was stuck.
inline constexpr int kJobFailed = 75;

// Writes the text to standard error and ends the process without running destructors or atexit
// functions, which might wait for a rank that is gone.
[[noreturn]] void end_process(int status, const std::string& text);

// From now on SIGTERM ends the process a second later, where nothing handles it: mpirun sends it to
// all as soon as one process is gone, and they have to say first which one that was, and where.
void delay_termination();

}  // namespace binade::dist
