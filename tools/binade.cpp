// binade: the command-line tool. binade doctor shows what a build can do on this machine, or with
// --security what listens, binade
// lens shows what the exponent lens saw in a run, binade launch starts the processes of a
// distributed program, binade slurm submit submits one to SLURM, binade ring-lens shows what an
// all-reduce does to numbers, binade checksum finds changed files of a data folder, binade
// pack writes a data set to a store for fast reading, inspect lists what a model file or a
// checkpoint holds, decode writes the pixels of an image, verify-dataset reports what is wrong with
// a data folder, binade report, diff, runs and watch show runs (run_commands.cpp), trace prints
// the tables of a trace, bottleneck says what slows a program down, kernel checks a CUDA kernel
// without a GPU, bench times kernels and compares builds, format shows a number format, op-classes
// writes docs/op_classes.md.
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

// Nothing acts before the whole command line is known to be right.
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
