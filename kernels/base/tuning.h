// The table behind the provider "auto" (gemm_provider.h, conv2d_provider.h): which implementation
// is the fastest for a problem (operation, kind of device, dtype, sizes, layout).
//
// A problem is timed once, at its first call outside of a graph capture: every candidate runs on
// the device, between events, and the fastest is kept. With BINADE_TUNING=FILE in the environment
// the table begins with what the file holds and every new line is appended to it, so that later
// runs time nothing. With "auto" results depend on the table: runs with the same one on the same
// kind of device repeat bit for bit. During a capture a problem that is not in the table runs as
// "own".
#pragma once
#include <string>
#include <vector>

namespace binade::kernels {

struct TuningEntry {
  std::string problem, choice;  // choice: a provider's name, for example own:tensor_64
};

// What the table says, "" if nothing; and a new entry. Throws Error where the file cannot be
// written.
std::string tuning_choice(const std::string& problem);
void add_tuning(const std::string& problem, const std::string& choice);

// All problems timed or read so far, in the order of their text.
std::vector<TuningEntry> tuning_table();

// Forgets the table and begins with that of a file, which need not exist; "" for none. Throws
// Error, with file and line, where it is not such a table; the table is then empty and no file is
// written.
void set_tuning_file(const std::string& path);

}  // namespace binade::kernels
