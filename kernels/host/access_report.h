// The memory-access report: the memory traffic that the loads and stores of kernels would cause on
// a GPU, counted per source line by the race build while Options::count_accesses is set. The k-th
// execution of an instruction by each lane of a warp counts as one request of that warp. The report
// sees the host compiler's loads and stores, not those of the GPU's machine code. It leaves out
// accesses that a GPU does not make to memory: arguments of the kernel, local variables, constants
// of the program, and everything that the executor itself reads.
#pragma once
#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/findings.h>

#include <string>
#include <vector>

namespace binade::kernels::host {

enum class AccessKind : uint8_t {
  global_read,
  global_write,
  global_atomic,
  shared_read,
  shared_write,
  shared_atomic,
};
constexpr bool is_shared(AccessKind kind) { return kind >= AccessKind::shared_read; }
constexpr bool is_atomic(AccessKind kind) {
  return kind == AccessKind::global_atomic || kind == AccessKind::shared_atomic;
}
const char* name_of(AccessKind kind);  // "global read", ...

struct AccessRow {
  std::string kernel;
  std::string file;
  int line = 0;
  AccessKind kind{};
  uint64_t requests = 0;        // of warps
  uint64_t lanes = 0;           // that took part in them
  uint64_t possible_lanes = 0;  // lanes that the warps of the requests have
  // Global memory: 32-byte pieces that the requests touch, and the fewest that could hold the bytes
  // of each request.
  uint64_t sectors = 0, ideal_sectors = 0;
  uint64_t bytes_used = 0;  // requested by lanes, each byte of a request once
  // Shared memory: passes over the 32 banks of 4 bytes, and the fewest for the words of each
  // request.
  uint64_t wavefronts = 0, ideal_wavefronts = 0;
  // Atomics: the sum over requests of the largest number of lanes on one address, which take turns.
  // Without contention it equals `requests`.
  uint64_t conflicts = 0;

  double sectors_per_request() const;
  double ideal_sectors_per_request() const;
  double used_share() const;  // global: bytes_used as a share of the sectors' bytes
  double wavefronts_per_request() const;
  double ideal_wavefronts_per_request() const;
  double contention() const;    // lanes on one address per request; 1 is none
  double active_share() const;  // lanes / possible_lanes: less than 1 where a warp diverges
};

// The launch of a kernel; for several launches the largest values.
struct LaunchRow {
  std::string kernel;
  uint32_t threads = 0;     // per block
  size_t shared_bytes = 0;  // per block
  // Sums over launches: blocks of the grids, and those that ran (CheckOptions::sampled_blocks).
  uint64_t launches = 0, blocks = 0, blocks_run = 0;
};

// How often warps ran the basic blocks of a line, in kernels compiled with
// -fsanitize-coverage=trace-pc.
struct ExecutionRow {
  std::string kernel;
  std::string file;
  int line = 0;
  uint64_t warps = 0;           // executions by a warp: the most by any of its lanes
  uint64_t lanes = 0;           // executions by lanes
  uint64_t possible_lanes = 0;  // executions by lanes without divergence
};

// Warp-wide and block-wide operations at a line: barriers, shuffles, votes, products of matrices.
struct TogetherRow {
  std::string kernel;
  std::string file;
  int line = 0;
  std::string what;    // "__syncthreads", "__shfl_down_sync", "mma_sync", ...
  uint64_t warps = 0;  // how often a warp did it; a barrier of 256 threads counts 8
  uint64_t lanes = 0;  // that took part
};

// Rows since the last reset, in the order of kernel, file and line.
std::vector<AccessRow> access_report();
std::vector<LaunchRow> launch_report();
std::vector<ExecutionRow> execution_report();
std::vector<TogetherRow> together_report();
void reset_access_report();

// Different bytes of global memory that kernels touched since the last reset. The memory traffic
// that no cache can save is read_first + written.
struct TouchedBytes {
  uint64_t read = 0;        // at any time
  uint64_t read_first = 0;  // before a kernel wrote them
  uint64_t written = 0;
  uint64_t compulsory() const { return read_first + written; }
};
TouchedBytes touched_bytes();                                 // anywhere
TouchedBytes touched_bytes(const void* begin, size_t bytes);  // in a range of memory

// Lines of the report that cost at least `factor` times the necessary cost, as findings of severity
// performance: bank conflicts, accesses that are not coalesced, atomics of many lanes on one
// address.
std::vector<Finding> performance_findings(double factor = 2);

}  // namespace binade::kernels::host
