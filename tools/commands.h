// Commands of the tool that have options of their own. Each adds itself; `result` becomes the exit
// status.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace binade {

// What comes after the tool's own arguments: a program and its arguments, behind "--" or not.
struct Tail {
  bool separated = false;  // there is a "--"
  std::vector<std::string> words;
};

// `before`: what a command that stops at its first foreign word has left.
std::vector<std::string> program_of(std::vector<std::string> before, const Tail& tail);

void add_launch(CLI::App& app, const Tail& tail, int& result);
void add_slurm(CLI::App& app, const Tail& tail, int& result);
void add_ring_lens(CLI::App& app);

}  // namespace binade
