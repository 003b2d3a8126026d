// Times many kernels in one process, from a list or on request, so that another program can time
// its own work in turn with ours.
#pragma once
#include <bench/kernel_timer.h>

#include <iosfwd>

namespace binade::bench {

// Reads lines "kernel rows cols small_rows small_cols ..." (scripts/gpu_check/kernels.txt); further
// words and lines that begin with # are skipped. Prints one JSON object per line and dtype; a
// failed case prints {"kernel": ..., "error": ...}. Returns the number of failed cases.
struct ListSettings {
  std::string file;
  bool small = false;
  std::vector<DType> dtypes = {};
  Device device = {};
  int samples = 15;
};
int run_list(const ListSettings& settings);

// Reads one request per line and answers with one JSON object per line:
//   prepare KEY KERNEL ROWS COLS DTYPE [PROVIDER]   {"key", "bytes", "flops", "calls"}
//   sample KEY                                      {"key", "seconds"}, per call
//   drop                                            {"dropped": number of cases}
// A failed request is answered with {"error": text}; the end of the input ends the server.
void serve(std::istream& in, Device device);

}  // namespace binade::bench
