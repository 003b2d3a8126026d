// The table behind the provider "auto" (gemm_provider.h, conv2d_provider.h): the fastest
// implementation for each problem (operation, kind of device, dtype, sizes, layout).
//
// A problem is timed at its first call outside of a graph capture: every candidate runs on the
// device between two events, and the fastest is kept. With BINADE_TUNING=FILE in the environment
// the table starts with the contents of the file and every new line is appended to it, so that
// later runs time nothing. Results with "auto" depend on the table: runs with the same table on the
// same kind of device repeat bit for bit. During a capture a problem that is not in the table runs
// as "own".
#pragma once
#include <string>
#include <vector>

namespace binade::kernels {

struct TuningEntry {
  std::string problem, choice;  // choice: a provider's name, for example own:tensor_64
};

// Looks up a problem ("" if it is not in the table), and adds one. Throws Error if the file cannot
// be written.
std::string tuning_choice(const std::string& problem);
void add_tuning(const std::string& problem, const std::string& choice);

// All problems timed or read so far, sorted by text.
std::vector<TuningEntry> tuning_table();

// Replaces the table by the contents of a file, which need not exist; "" for no file. Throws Error,
// with file and line, if it is not a table of this format; the table is then empty and no file is
// written.
void set_tuning_file(const std::string& path);

}  // namespace binade::kernels
