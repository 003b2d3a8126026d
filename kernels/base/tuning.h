// The table behind the provider "auto" (kernels/base/provider.h): for each problem (operation, kind
// of device, dtype, sizes, layout) the implementation that was chosen, and why.
//
// The first call of a problem outside of a graph capture decides. Candidates that a rule knows to
// be slower, or that cannot compute the problem, are not timed. If more than one is left, each runs
// on the device between two events, and the fastest is kept; later calls look the choice up and do
// not wait for the device. With BINADE_TUNING=FILE in the environment the table starts with the
// contents of the file and every new line is appended to it, so that later runs time nothing.
// Results with "auto" depend on the table: runs with the same table on the same kind of device
// repeat bit for bit. During a capture a problem that is not in the table runs as "own". The
// emulated device, whose times mean nothing, runs all problems as "own" unless there is a file.
//
// A process keeps bounded numbers of choices: of each operation those of the last plan_limit()
// problems (kernels/base/provider.h), and in the table the lines of these and of others, up to
// kTuningLines * plan_limit(). A problem that was dropped is looked up in the file when it returns,
// and decided anew if there is none.
//
// `binade doctor --providers` prints the table of BINADE_TUNING.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace binade::kernels {

inline constexpr int64_t kTuningLines = 16;  // more than there are operations

struct TuningEntry {
  std::string problem, choice;  // choice: a provider's name, for example own:tensor_64
  std::string reason;           // for readers: the times, and what was not timed and why
};

// The line of a problem. It stays in the table while somebody holds it.
struct TuningDecision {
  std::string choice, reason;
};
using TuningLine = std::shared_ptr<const TuningDecision>;

// Looks up a problem (null if it was not decided), and adds one. Throws Error if the file cannot be
// read or written. Tabs and line ends in the texts become spaces.
TuningLine find_tuning(const std::string& problem);
TuningLine add_tuning(const std::string& problem, const std::string& choice,
                      const std::string& reason = "");
std::string tuning_choice(const std::string& problem);  // "" if it was not decided

// The problems in the table, sorted by text.
std::vector<TuningEntry> tuning_table();

// Replaces the table by the contents of a file, which need not exist; "" for no file. Throws Error,
// with file and line, if it is not a table of this format; the table is then empty and no file is
// written.
void set_tuning_file(const std::string& path);
std::string tuning_file();  // "" if there is none

uint64_t tuning_version();  // changes when a choice that was in the table no longer holds

}  // namespace binade::kernels
