// The functions and source lines of instructions, found by addr2line (of binutils) in the symbols
// and the debug information (-g1) of the program and its libraries.
#pragma once
#include <string>
#include <vector>

namespace binade::kernels {

// A function that an instruction belongs to. What is not known is empty, or 0.
struct SourceFrame {
  std::string function = {};  // demangled
  std::string file = {};      // as the compiler was given it
  int line = 0;
};

struct SourceFrames {
  // Innermost first: a function that was inlined, then the one that it was inlined into.
  std::vector<SourceFrame> frames = {};
  std::string program = {};  // the file that holds the instruction: the program or a library
  size_t address = 0;        // of the instruction within that file, as addr2line takes it
};

// One result for each instruction. addr2line is started once per file, for up to 1000 instructions;
// without it frames are empty.
std::vector<SourceFrames> source_frames(const std::vector<const void*>& instructions);

}  // namespace binade::kernels
