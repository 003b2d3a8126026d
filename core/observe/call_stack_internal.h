// The calls that led to an op, and the line of the program among them. Recorded as return
// addresses, which takes some microseconds; names and lines are looked up when somebody asks.
// Internal to the profiler.
#pragma once
#include <binade/kernels/base/source_frames.h>

#include <cstdint>
#include <span>
#include <string>

namespace binade::detail {

// Keeps the return addresses of the functions that run on this thread. Equal stacks have one
// number; 0 if there is no room. Thread-safe.
uint32_t record_call_stack() noexcept;

// The line of the program in a stack: "train.cpp:40", as the compiler was given the file; or
// "Net::forward (demo+0x1a2b)", the function and its address for addr2line, where the program has
// no debug information; or nothing. Looks up all stacks that are new in one go, which starts
// addr2line. Thread-safe.
std::string call_line(uint32_t stack);

// The same of calls that were looked up, innermost first. The line is that of the innermost
// function that is no part of the engine; the models of nn/models.h, nn/resnet.h and nn/gpt2.h
// count as programs. `root` is the folder of the engine's sources, with a '/' at its end.
std::string line_of_calls(std::span<const kernels::SourceFrames* const> calls,
                          const std::string& root);

}  // namespace binade::detail
