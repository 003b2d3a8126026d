// The source line of an instruction, found by addr2line in debug information (-g1).
#pragma once
#include <string>

namespace binade::kernels::host {

// The innermost line of an instruction, and the line in the kernel source (*.cu) into which it was
// inlined. Both are "?" if unknown. Cached.
struct SourceLine {
  std::string inner, kernel;
};
const SourceLine& source_line(const void* instruction);

}  // namespace binade::kernels::host
