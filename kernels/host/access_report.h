// The memory-access report: the memory traffic that the loads and stores of kernels would cause on
// a GPU, counted per source line by the race build while Options::count_accesses is set. The k-th
// execution of an instruction by each lane of a warp counts as one request of that warp. The report
// sees the host compiler's loads and stores, not those of the GPU's machine code.
#pragma once
#include <binade/kernels/host/executor.h>

#include <string>
#include <vector>

namespace binade::kernels::host {

enum class AccessKind : uint8_t { global_read, global_write, shared_read, shared_write };

struct AccessRow {
  std::string kernel;
  std::string file;
  int line;
  AccessKind kind;
  uint64_t requests;
  uint64_t sectors;     // global: 32-byte pieces of memory that the requests touch
  uint64_t bytes_used;  // requested by lanes, each byte of a request once
  uint64_t wavefronts;  // shared: passes over the 32 banks of 4 bytes

  double sectors_per_request() const;
  double used_share() const;  // global: bytes_used as a share of the sectors' bytes
  double wavefronts_per_request() const;
};

// How a kernel was launched; of several launches the largest.
struct LaunchRow {
  std::string kernel;
  uint32_t threads;     // per block
  size_t shared_bytes;  // per block
};

// Rows since the last reset, in the order of kernel, file and line.
std::vector<AccessRow> access_report();
std::vector<LaunchRow> launch_report();
void reset_access_report();

}  // namespace binade::kernels::host
