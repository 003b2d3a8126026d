// The file of a shadow (train/precision/shadow.h) and its report: which module, and which op in it,
// is to blame for the difference between the loss of a step and the loss in f64.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/precision/shadow.h>

namespace binade::train {

std::string to_json(const ShadowStep& step);  // one line

// Throws if the file cannot be read or a line is not a step of a shadow. An incomplete last line,
// left by a killed run, is ignored.
std::vector<ShadowStep> read_shadow(const std::string& file, FileSystem& files = file_system());

// Moves the lines of steps from `first_step` on to another file (keep_lines in
// train/run_directory.h).
void keep_shadow_lines(const std::string& file, int64_t first_step,
                       FileSystem& files = file_system());

// The errors that a module's ops and weights add to the loss, without the modules below it.
struct ShadowModule {
  std::string module = {};
  double budget = 0;
  double largest = 0;  // the largest introduced error of its ops, relative
};
// By the size of their budgets.
std::vector<ShadowModule> modules_of(const ShadowStep& step);

std::string to_text(const ShadowStep& step);
// One file that needs no other file.
std::string to_html(const std::vector<ShadowStep>& steps);

}  // namespace binade::train
