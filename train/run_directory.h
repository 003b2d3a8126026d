// The directory of a run: metrics, checkpoints, model.
#pragma once
#include <string>

namespace binade::train {

// Makes or checks the directory of a run, as the Trainer does. Throws if it is not empty and
// neither `resume` nor `overwrite` is set, or if it cannot be written. `overwrite` removes metrics,
// model, checkpoints and lens files of an earlier run and nothing else.
void prepare_run_directory(const std::string& path, bool resume, bool overwrite);
// The first of "PREFIX-1", "PREFIX-2", ... that does not exist.
std::string fresh_run_directory(const std::string& prefix);

}  // namespace binade::train
