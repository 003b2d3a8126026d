// Events that support.cpp records while kernels run, for the child process's main().
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
// Sets what cudaGetLastError() returns next.
void set_last_error(cudaError_t error);
void note_launch(const KernelShape& shape);
std::vector<KernelShape> take_launches();
// Raises the limit of dynamic shared memory for launches.
void allow_shared(int64_t bytes);

struct NumberNote {
  NumberEvent event;
  float value;              // the first one
  const void* instruction;  // where it happened; if null, `site` says it
  kernels::host::Site site;
  uint3 block, thread;
  uint64_t count = 0;
};
std::vector<NumberNote> take_notes();

// Frees the memory that solve() did not free; returns the number of blocks.
int free_allocations();

}  // namespace binade::lab
