// Command lines of the tool binade, as a whole.
#include <algorithm>

#include "tests/fuzz/target_list_internal.h"
#include "tools/command_line.h"

namespace binade::fuzz {
namespace {

using namespace tool;

void check_rules(const HelpOptions& o) { require(!o.text.empty(), "there is a help"); }
void check_rules(const VersionOptions&) {}
void check_rules(const OpClassesOptions&) {}
void check_rules(const FormatOptions& o) { require(!o.format.empty(), "a format is named"); }
void check_rules(const DoctorOptions& o) {
  require(o.security || o.run.empty(), "only --security looks at a run");
}
void check_rules(const PackOptions& o) {
  require(!o.source.empty() && !o.store.empty(), "a data set and a store are named");
  require(o.width == 0 || o.height > 0, "a width comes with a height");
}
void check_rules(const LensOptions& o) { require(!o.run.empty(), "a run is named"); }
void check_rules(const InspectOptions& o) { require(!o.path.empty(), "a file is named"); }
void check_rules(const ReportOptions& o) {
  require(!o.runs.empty() && std::count(o.runs.begin(), o.runs.end(), "") == 0, "runs are named");
}
void check_rules(const DiffOptions& o) {
  require(!o.a.empty() && !o.b.empty(), "two runs are named");
}
void check_rules(const RunsOptions& o) { require(!o.folder.empty(), "a folder is named"); }
void check_rules(const WatchOptions& o) {
  require(!o.run.empty() && o.interval >= 0.05 && o.interval <= 3600, "a run is named");
}
void check_rules(const TraceOptions& o) {
  require(!o.path.empty() && o.rows >= 1, "a trace is named");
}
void check_rules(const BottleneckOptions& o) {
  require(!o.program.empty() && o.steps >= 4 && o.warmup >= 0, "a program is named");
}
void check_rules(const ReplayOptions& o) {
  require(!o.run.empty() && !o.policies.empty(), "a run and policies are named");
}
void check_rules(const BlackBoxOptions& o) {
  require(!o.file.empty() && o.threads >= 0, "a file is named");
}
void check_rules(const BenchOptions& o) {
  const bool diff = !o.words.empty() && o.words[0] == "diff";
  require(o.list || o.serve || o.all || !o.words.empty(), "there is something to time");
  require(!diff || o.words.size() == 3, "a comparison has two sides");
  require(o.samples >= 0 && o.threads >= 0 && (o.rounds == 0 || o.rounds >= 6) && o.minimum >= 0 &&
              o.plant >= 1,
          "the numbers of a bench are in their ranges");
}
void check_rules(const ChecksumOptions& o) {
  require(!o.folder.empty() && !(o.verify && o.update), "a folder, and one thing to do with it");
}
void check_rules(const KernelOptions& o) {
  require(!o.file.empty() && !o.case_and_shape.empty(), "a file and a case are named");
  require(o.page.empty() || o.page != o.json, "two reports have two files");
}
void check_rules(const LaunchOptions& o) {
  require(!o.program.empty() && !o.program[0].empty(), "a program is named");
  require(o.processes.ranks >= 1 && o.processes.ranks <= 4096 && o.processes.grace_seconds >= 0,
          "the numbers of a launch are in their ranges");
}
void check_rules(const SlurmSubmitOptions& o) {
  require(!o.job.command.empty() && !o.job.command[0].empty(), "a program is named");
  const std::string script = dist::slurm_script(o.job);
  require(script.starts_with("#!/bin/bash\n"), "a job that was accepted has a script");
}
void check_rules(const RingLensOptions& o) {
  require(o.file.empty() == o.name.empty() || !o.file.empty(), "a tensor is of a file");
  require(o.elements >= 1 && o.elements <= 1 << 28 && o.deviation >= 0, "numbers can be drawn");
  require(!o.lens.ranks.empty(), "there are ranks");
  for (const int ranks : o.lens.ranks) {
    require(ranks >= 2 && ranks <= 4096, "there are ranks to sum over");
  }
}
void check_rules(const DecodeOptions& o) {
  require(!o.file.empty(), "a file is named");
  require(!o.facts_only || o.output.empty(), "facts are printed or pixels written");
}
void check_rules(const VerifyDatasetOptions& o) { require(!o.folder.empty(), "a folder is named"); }

}  // namespace

// One word up to each zero byte, as in the memory of a process.
void parse_command_line(Bytes bytes) {
  std::vector<std::string> words;
  std::string_view rest = text_of(bytes);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::visit([](const auto& options) { check_rules(options); }, tool::parse_command_line(words));
}

}  // namespace binade::fuzz
