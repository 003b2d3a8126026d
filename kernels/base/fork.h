// Threads do not survive fork(): what owns threads compares this number with the one at its birth.
#pragma once
#include <cstdint>

namespace binade {

// How many forks, since the first call in this program, lie between its process and this one.
uint32_t fork_count();

}  // namespace binade
