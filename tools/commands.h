// Commands of the tool that have options of their own. Each adds itself; `result` becomes the exit
// status.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace binade {

// The arguments after the tool's own: a program and its arguments, with or without "--" before
// them.
struct Tail {
  bool separated = false;  // there is a "--"
  std::vector<std::string> words;
};

// `before`: the arguments left by a command that stops at its first unknown argument.
std::vector<std::string> program_of(std::vector<std::string> before, const Tail& tail);

void add_launch(CLI::App& app, const Tail& tail, int& result);
void add_slurm(CLI::App& app, const Tail& tail, int& result);
void add_ring_lens(CLI::App& app);
void add_checksum(CLI::App& app, int& result);
void add_inspect(CLI::App& app, int& result);

}  // namespace binade
