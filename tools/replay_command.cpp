// binade replay: shows how a run would have gone with other policies of the loss scale.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/train/precision/scale_replay.h>

#include <cstdio>

namespace binade::tool {

int run(const ReplayOptions& o) {
  const bool is_run = file_kind(o.run) == "a directory";
  const train::ScalerLog log =
      train::read_scaler_log(is_run ? o.run + "/scaler.jsonl" : o.run, o.phase);
  std::vector<train::ScaleReplay> replays;
  for (const std::string& policy : o.policies) {
    replays.push_back(train::replay(log, train::parse_scale_policy(policy)));
  }
  std::fputs(train::to_text(log, replays).c_str(), stdout);
  return 0;
}

}  // namespace binade::tool
