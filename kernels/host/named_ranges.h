// Names for memory, so that a finding says tile[33] and out[1024] and not an address: parameters of
// a launch in guarded buffers, and __shared__ arrays. The race build compares every access with the
// ranges; the plain build finds accesses to guards by their page faults (fault_signal.h).
//
// Thread safety: ranges change only while no kernel runs; shared_variable() and dynamic_shared()
// are called by kernels.
#pragma once
#include <binade/kernels/host/findings.h>
#include <binade/kernels/host/kernel_calls.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace binade::kernels::host {

struct NamedRange {
  std::string name;
  const void* begin = nullptr;
  size_t bytes = 0;
  size_t element_bytes = 1;
  // Bytes before and after it that belong to no other range; an access there is out of its bounds.
  size_t guard = 0;
  MemorySpace space = MemorySpace::global;
  bool read_only = false;     // a store is a write_to_input
  bool host_visible = false;  // host code may access it
  // True if the range starts unwritten: a load of a byte that no store of a kernel and no
  // mark_written() has reached since name_range() is an uninitialised_read.
  bool unwritten = false;
  // For a matrix with a leading dimension: elements of a row, and elements from a row to the next.
  // Elements between them are padding, and an access there is out of bounds. 0: no rows.
  int64_t row_elements = 0, row_pitch = 0;
};

// Names a range of memory until forget_range(begin). Throws Error if it overlaps another one.
void name_range(const NamedRange& range);
void forget_range(const void* begin);
void forget_all_ranges();
std::vector<NamedRange> named_ranges();
// Copies and fills by the host count as writes.
void mark_written(const void* begin, size_t bytes);
// From now on a byte of the range counts as not yet written.
void mark_unwritten(const void* begin, size_t bytes);

// The element at an address: in a range or its guards, or with `nearest` of the closest range.
// `space` is none if nothing is known about the address.
FoundElement element_at(const void* address, bool nearest = false);

// A buffer between guards, named while it lives. It begins at a multiple of 256. In the race build
// the guards are memory that can be read and written, filled with NaN; in other builds the first
// page beyond the buffer and the page before it fault. The bytes up to that page hold a pattern.
struct GuardedOptions {
  std::string name;
  size_t bytes = 0;
  size_t element_bytes = 4;
  bool read_only = false, host_visible = false;
  bool unwritten = true;  // filled with 0xFF (NaN); false: with zeros
  int64_t row_elements = 0, row_pitch = 0;
  size_t guard = size_t{64} << 10;  // at least this much on each side
};
class GuardedBuffer {
 public:
  explicit GuardedBuffer(const GuardedOptions& options);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return options_.bytes; }
  // Copies from the host; the bytes count as written.
  void write(const void* from, size_t bytes, size_t offset = 0);
  // Fills buffer and guards anew, as the constructor did.
  void reset();
  // From now on nothing may access it, and its name says that it was freed.
  void retire();
  // Adds the changed bytes of the guards to findings(), as out_of_bounds without a line, and
  // returns their number. In builds without the race detector only this shows a write between the
  // end of the buffer and the next page.
  int check_guards() const;

 private:
  void fill();

  GuardedOptions options_;
  char* memory_ = nullptr;  // of the mapping
  size_t mapped_ = 0;
  char* data_ = nullptr;
};

// The last write to an address by a kernel, in the race build: what explains an element whose bits
// differ between schedules. act is none if no kernel wrote it.
struct LastWriter {
  FindingSide side;
  std::string kernel;
};
LastWriter last_writer(const void* address);

}  // namespace binade::kernels::host
