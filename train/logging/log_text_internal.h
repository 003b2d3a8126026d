// Functions that the loggers share: paths, numbers, syncing. Internal to train.
#pragma once
#include <binade/train/logging/logger.h>

namespace binade::train {

// The path of `file` in the directory of the run; `file` itself if its path is absolute.
std::string log_path(const LogStart& start, const std::string& file);

// The shortest text that reads back equal; nan, inf, -inf.
std::string shortest(double value);

// Waits until the file's bytes are on disk. Without such a file it does nothing.
void sync_log(const std::string& path, FileSystem& files);

}  // namespace binade::train
