// The source line of an instruction, found by addr2line in debug information (-g1).
#pragma once
#include <binade/kernels/host/findings.h>

#include <vector>

namespace binade::kernels::host {

// The line in the kernel source (*.cu) into which an instruction was inlined, and the innermost one
// if that is another. Not known() without debug information. Cached.
const FindingLine& source_line(const void* instruction);
// Looks all of them up at once, which takes as long as one.
void look_up_lines(const std::vector<const void*>& instructions);

}  // namespace binade::kernels::host
