// What support.cpp notes while kernels run, for the program of the child process.
#pragma once
#include <binade/lab/device/launch.h>

#include <string>
#include <vector>

namespace binade::lab {

struct KernelShape {
  std::string kernel;
  int line;
  dim3 grid, block;
  size_t shared_bytes;
};
// What cudaGetLastError() returns next.
void set_last_error(cudaError_t error);
void note_launch(const KernelShape& shape);
std::vector<KernelShape> take_launches();
// Lets launches have so many bytes of dynamic shared memory.
void allow_shared(int64_t bytes);

struct NumberNote {
  NumberEvent event;
  float value;              // the first one
  const void* instruction;  // where it was, or
  kernels::host::Site site;
  uint3 block, thread;
  uint64_t count = 0;
};
std::vector<NumberNote> take_notes();

// Frees what solve() allocated and did not free; returns how many blocks that were.
int free_allocations();

}  // namespace binade::lab
