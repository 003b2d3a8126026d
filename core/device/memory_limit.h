// How much memory a program may use: a limit of its own, RAM, the limit of its control group
// (container), and what a device has free.
#pragma once
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/device.h>

#include <cstdint>
#include <string>

namespace binade {

// The most bytes that the host's allocator takes from the system; 0: no limit. Beyond it cached
// blocks are returned, and then a request throws OutOfMemory, where Linux would end the process.
// Returns the limit before.
int64_t set_memory_limit(int64_t bytes);
int64_t memory_limit();

// Bytes in tensors that a program can have on a device: what it has now and what it could still
// get. On the CPU the least of set_memory_limit(), the available RAM and the room in the control
// groups (v1 and v2) of this process.
struct MemoryRoom {
  int64_t bytes = 0;
  std::string reason = {};  // "available RAM", "limit of the control group", "cuda:0"
};
MemoryRoom memory_room(Device device);

// Bytes that the memory limits of this process's control groups still leave: memory.max less
// memory.current (version 2), memory.limit_in_bytes less memory.usage_in_bytes (version 1), the
// least of all groups; the largest int64_t without a limit.
int64_t control_group_room(const kernels::ControlGroupFiles& files = {});

}  // namespace binade
