// Which file systems keep the times of directories. Internal to core.
#pragma once
#include <cstdint>

namespace binade {

// True if a file system of this kind (f_type of statfs) sets both times of a directory at every
// change of an entry. Behind FUSE this depends on the program: buckets of objects, for example,
// have folders without times.
bool sets_directory_times(uint32_t kind);

}  // namespace binade
