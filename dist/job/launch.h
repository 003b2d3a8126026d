// Starts the processes of a job on this machine: what binade launch does.
#pragma once
#include <string>
#include <vector>

namespace binade::dist {

struct LaunchOptions {
  int ranks = 1;
  // After one has failed or a signal was passed on, those left have this long to end by themselves
  // (more than WorldOptions::grace_seconds); then they get SIGKILL.
  double grace_seconds = 3.5;
  std::string link_delay =
      {};  // of all messages: BINADE_LINK_DELAY (dist/transport/delayed_transport.h)
};

// Runs `command` once per rank and waits for all. Returns 0, or what the first that failed exited
// with (128 + N for signal N); none is left then. An interrupt or SIGTERM is passed on to all.
// Throws Error where processes cannot be started.
int launch(const std::vector<std::string>& command, const LaunchOptions& options);

}  // namespace binade::dist
