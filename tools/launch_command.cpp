// binade launch: starts the processes of a distributed program on this machine.
#include "commands.h"

namespace binade::tool {

int run(const LaunchOptions& o) { return dist::launch(o.program, o.processes); }

}  // namespace binade::tool
