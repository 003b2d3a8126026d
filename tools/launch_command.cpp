// binade launch: the processes of a distributed program on this machine.
#include "commands.h"

#include <binade/dist/job/launch.h>

#include <CLI/CLI.hpp>
#include <memory>

namespace binade {

std::vector<std::string> program_of(std::vector<std::string> before, const Tail& tail) {
  if (tail.separated && !before.empty()) {
    before.push_back("--");  // the program's own
  }
  before.insert(before.end(), tail.words.begin(), tail.words.end());
  return before;
}

void add_launch(CLI::App& app, const Tail& tail, int& result) {
  auto* launch = app.add_subcommand(
      "launch", "start a distributed program on this machine: binade launch -n 4 program ...");
  const auto processes = std::make_shared<dist::LaunchOptions>();
  launch->add_option("-n", processes->ranks, "processes")->capture_default_str();
  launch
      ->add_option("--grace", processes->grace_seconds,
                   "seconds that processes have after the first failure or a signal")
      ->capture_default_str();
  launch->add_option("--link-delay", processes->link_delay,
                     "let messages take as long as over a link: milliseconds, or "
                     "milliseconds,MB/s");
  launch->prefix_command();  // the rest is the program's
  launch->callback([launch, processes, &tail, &result] {
    result = dist::launch(program_of(launch->remaining(), tail), *processes);
  });
}

}  // namespace binade
