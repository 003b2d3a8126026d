// Starts the processes of a job on this machine: the implementation of binade launch.
#pragma once
#include <string>
#include <vector>

namespace binade::dist {

struct LaunchOptions {
  int ranks = 1;
  // After a process has failed or a signal was forwarded, the others have this long to end on their
  // own (more than WorldOptions::grace_seconds); then they get SIGKILL.
  double grace_seconds = 3.5;
  std::string link_delay = {};  // BINADE_LINK_DELAY (dist/transport/delayed_transport.h)
};

// Throws Error if launch() would reject the arguments before it starts anything.
void check_launch(const std::vector<std::string>& command, const LaunchOptions& options);

// Runs `command` once per rank and waits for all of them to end. Returns 0, or the exit status of
// the first that failed (128 + N for signal N). An interrupt or SIGTERM is forwarded to all. Throws
// Error if processes cannot be started.
int launch(const std::vector<std::string>& command, const LaunchOptions& options);

}  // namespace binade::dist
