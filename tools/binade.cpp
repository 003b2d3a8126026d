// binade: the command-line tool. `doctor` shows what a build can do on this machine, or with
// --security the addresses where ranks listen. `lens` shows the exponents of a run, and `ring-lens`
// the rounding errors of an all-reduce. `launch` starts the processes of a distributed program, and
// `slurm submit` submits one to SLURM. `checksum` finds changed files of a data folder, `pack`
// writes a data set to a store for fast reading, and `verify-dataset` checks a data folder.
// `inspect` lists the contents of a model file or a checkpoint, and `decode` writes the pixels of
// an image. `report`, `diff`, `runs` and `watch` show runs (run_commands.cpp). `trace` prints the
// tables of a trace, and `bottleneck` finds what slows a program down. `kernel` checks a CUDA
// kernel without a GPU. `bench` times kernels and compares builds. `format` shows a number format.
// `blackbox` repeats a step that was not finite. `replay` tries other policies of the loss scale on
// a run. `op-classes` writes docs/op_classes.md.
#include "commands.h"

#include <binade/core/io/program_streams.h>
#include <binade/core/precision/op_class.h>

#include <cstdio>
#include <exception>

namespace binade::tool {
namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run(const HelpOptions& help) { return print(help.text); }
int run(const VersionOptions&) { return print(BINADE_VERSION "\n"); }
int run(const OpClassesOptions&) { return print(op_classes_page()); }

// Checks the whole command line before a command acts.
int main_of(const std::vector<std::string>& words) {
  constexpr int kError = 1, kUsage = 2;
  Command command;
  try {
    command = parse_command_line(words);
  } catch (const std::exception& error) {
    print_error(error);
    return kUsage;
  }
  try {
    return std::visit([](const auto& options) { return run(options); }, command);
  } catch (const std::exception& error) {
    print_error(error);
    return kError;
  }
}

}  // namespace
}  // namespace binade::tool

int main(int argc, char** argv) {
  const binade::ProgramStreams streams;
  return streams.finish(binade::tool::main_of({argv + (argc > 0), argv + argc}));
}
