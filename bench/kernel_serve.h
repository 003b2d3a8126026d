// Many kernels in one process: a list from a file, or on request, so that another program can time
// its own work in turn with ours.
#pragma once
#include <bench/kernel_timer.h>

#include <iosfwd>

namespace binade::bench {

// Lines "kernel rows cols small_rows small_cols ..." (scripts/gpu_check/kernels.txt); words behind
// them and lines that begin with # are skipped. Prints one JSON object per line and dtype; a case
// that fails prints {"kernel": ..., "error": ...}. Returns the number of those.
struct ListSettings {
  std::string file;
  bool small = false;
  std::vector<DType> dtypes = {};
  Device device = {};
  int samples = 15;
};
int run_list(const ListSettings& settings);

// Reads requests of one line each and answers with one JSON object per line:
//   prepare KEY KERNEL ROWS COLS DTYPE [PROVIDER]   {"key", "bytes", "flops", "calls"}
//   sample KEY                                      {"key", "seconds"}, of one call
//   drop                                            {"dropped": number of cases}
// A request that fails is answered with {"error": text}; the end of the input ends the server.
void serve(std::istream& in, Device device);

}  // namespace binade::bench
