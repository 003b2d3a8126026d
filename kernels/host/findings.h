// Findings: the errors that the executor finds in kernels, as data. A launch that cannot go on
// throws the text of its finding as a KernelError.
//
// Without collecting (the default) the first finding of severity unsafe or wrong ends the launch.
// With CheckOptions::collect_findings a launch goes on after a finding wherever it can: after
// races, missing barriers, reads of uninitialised memory, accesses out of bounds into the guards of
// a named range, misaligned accesses, writes to inputs, arithmetic without a defined result. Only
// these findings end it, since it cannot go on: divergent barriers and masks, deadlocks, the step
// limit, an access to memory that is in no range, exceptions.
//
// Thread safety: findings() etc. may be called while no kernel runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace binade::kernels::host {

enum class FindingKind : uint8_t {
  race,                // two accesses without an order; one of them writes
  missing_barrier,     // the same between threads of one block, where a barrier would order them
  missing_fence,       // a read of what an atomic says another block has published, without a fence
  copy_in_flight,      // an access to the target of cp.async before its wait
  uninitialised_read,  // memory that nothing wrote: shared memory, or an output range
  out_of_bounds,       // outside of a named range or array, or of all memory of the launch
  misaligned,          // an address that is no multiple of what the access needs
  write_to_input,      // a store to a range that is read-only
  barrier_divergence,  // threads at different barriers, or ended before one
  warp_divergence,     // a warp collective whose mask and whose lanes disagree
  deadlock,            // no thread of the block can run
  step_limit,          // a thread did not end within CheckOptions::step_limit steps
  undefined_math,      // overflow of a signed integer, division by zero, a shift out of range
  bad_argument,        // arguments of a primitive or a launch that CUDA refuses
  exception,           // a C++ exception left the kernel
  host_access,         // host code accesses memory of the device (CheckOptions::host_accesses)
  same_value_store,    // several threads store the same value to one address
  nondeterministic,    // bits that differ between schedules (schedules.h)
  bank_conflict,       // of the access report (access_report.h), as the three below
  uncoalesced,
  atomic_contention,
};
enum class Severity : uint8_t { unsafe, wrong, warning, performance };

const char* name_of(FindingKind kind);  // "race", "missing barrier", ...
const char* name_of(Severity severity);
Severity severity_of(FindingKind kind);

struct Coordinates {
  unsigned x = 0, y = 0, z = 0;
  bool operator==(const Coordinates&) const = default;
};
std::string to_string(Coordinates at);  // "(1,0,0)"

// A line of the source. `file` is empty and `line` 0 if it is unknown.
struct FindingLine {
  std::string file;  // as the compiler was given it
  int line = 0;
  std::string inner_file;  // where `line` calls an inlined helper: the place in the helper
  int inner_line = 0;
  int column = 0;  // of `line`, in bytes from 1; 0 if it is unknown
  bool known() const { return line > 0; }
  bool operator==(const FindingLine&) const = default;
};

enum class Act : uint8_t {
  none,        // this side does not exist
  read,        // of memory
  write,       // to memory
  atomic,      // read, modify and write
  copy,        // cp.async
  barrier,     // waits at a barrier
  collective,  // waits in a warp collective
  end,         // ended; its line is the last one known
  run,         // anything else
};

// One of the two threads of a finding.
struct FindingSide {
  Act act = Act::none;
  FindingLine line;
  Coordinates block, thread;
  int warp = 0, lane = 0;
  uint32_t barriers = 0;  // barriers of the whole block that this thread has passed: its "trip"
};

// The operation that would order the two sides of a race.
enum class Remedy : uint8_t {
  none,
  syncthreads,     // between the two lines
  syncwarp,        // the same; both are lanes of one warp
  atomic,          // both write: an atomic operation
  fence,           // between blocks: __threadfence(), an atomic, an atomic, __threadfence()
  fence_after,     // the last of these four
  another_launch,  // between blocks, without atomics: only the end of the launch orders them
  wait_for_copy,   // cp.async: wait for the copy
};
const char* name_of(Remedy remedy);  // "__syncthreads()", ...

enum class MemorySpace : uint8_t { none, global, shared, constant, local };

// The element of an array that a finding is about.
struct FoundElement {
  MemorySpace space = MemorySpace::none;
  std::string array;         // the name of the range; empty if the address is in none
  int64_t index = 0;         // in elements from the beginning of the array; may be negative
  int64_t count = 0;         // elements of the array
  size_t element_bytes = 0;  // 0: unknown
  // The place in an array of rows (NamedRange::row_elements); `column` may lie in the padding.
  int64_t row = -1, column = -1;
  bool padding = false;
  bool operator==(const FoundElement&) const = default;
};
// "tile[33]", "out[1024] of 1024", "x's padding (row 1, column 64 of 64)".
std::string to_string(const FoundElement& element);

struct Finding {
  FindingKind kind = FindingKind::race;
  Severity severity = Severity::unsafe;
  std::string kernel;
  FindingSide first;     // the thread that was running when it was found
  FindingSide second;    // the other thread: the earlier access, or a thread that waits
  FoundElement element;  // of the first occurrence
  size_t bytes = 0;      // of the access of `first`
  Remedy remedy = Remedy::none;
  std::string order;    // of races: "read after write", "write after read", ...
  std::string message;  // the whole text of the first occurrence, as KernelError has it
  bool ended = false;   // the launch ended with it
  // Totals over all occurrences that have the same kind, kernel, array and two lines.
  uint64_t count = 1;
  uint64_t elements = 1;  // different elements, counted up to kMostElements
  uint64_t launches = 1;
  static constexpr uint64_t kMostElements = 4096;
};

// The findings since the last reset, one for each kind, kernel, array and pair of lines (either way
// round), in the order of their first occurrence.
std::vector<Finding> findings();
// Adds a finding from outside of the executor, such as wrong numbers; grouped as the others.
void add_finding(const Finding& finding);
void reset_findings();

// Called at the first occurrence of each group, while the kernel still runs: a child process that
// may die passes findings on here. It must not launch kernels. Null for none.
void set_finding_sink(void (*sink)(const Finding& finding));

}  // namespace binade::kernels::host
