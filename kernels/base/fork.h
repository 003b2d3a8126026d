// Threads do not survive fork(), so an owner of threads compares this number with its first value.
#pragma once
#include <cstdint>

namespace binade {

// The number of fork() calls between the process that called this first and the present process.
uint32_t fork_count();

}  // namespace binade
