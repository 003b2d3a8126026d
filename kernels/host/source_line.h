// The source line of an instruction, from debug information (-g1) by way of addr2line.
#pragma once
#include <string>

namespace binade::kernels::host {

// Lines that an instruction belongs to: the innermost, and where it was inlined into a kernel
// source
// (*.cu) the line there. Both are "?" if nothing is known. Cached.
struct SourceLine {
  std::string inner, kernel;
};
const SourceLine& source_line(const void* instruction);

}  // namespace binade::kernels::host
