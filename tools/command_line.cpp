// The parsers of the commands. Only this file and command_line/ include CLI11: it takes seconds to
// compile, so these files are few and large.
#include "command_line.h"

#include "command_line/flags_internal.h"

#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>

namespace binade::tool {
namespace {

bool takes_program(const std::string& command) {
  return command == "launch" || command == "slurm" || command == "bottleneck";
}

// Splits the tail off `words`.
Tail take_tail(Words& words) {
  const bool has_program = !words.empty() && takes_program(words[0]);
  const auto separator = std::find(words.begin(), words.end(), "--");
  if (!has_program || separator == words.end()) {
    return {};
  }
  Tail tail{true, {separator + 1, words.end()}};
  words.erase(separator, words.end());
  return tail;
}

void add_doctor(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<DoctorOptions>();
  auto* command =
      app.add_subcommand("doctor", "what this build is made of, and which device programs use");
  auto* security = add_switch(
      command, "--security", o->security,
      "what ranks listen at, where their secret comes from, and who may change files; status 1 if "
      "something is not safe");
  add_switch(command, "--providers", o->providers,
             "which implementation of each family of operations runs, and the table of "
             "BINADE_TUNING: what was chosen for each problem and why")
      ->excludes(security);
  command->add_option("--run", o->run, "the run directory to look at")
      ->check(path())
      ->needs(security);
  command->callback([o, &chosen] {
    check(o->security || o->run.empty(), "doctor: --run has no effect without --security");
    chosen = *o;
  });
}

void add_launch(CLI::App& app, const Tail& tail, Command& chosen) {
  const auto o = std::make_shared<LaunchOptions>();
  auto* command = app.add_subcommand(
      "launch", "start a distributed program on this machine: binade launch -n 4 program ...");
  command->add_option("-n", o->processes.ranks, "processes")
      ->transform(number<int>())
      ->capture_default_str();
  command
      ->add_option("--grace", o->processes.grace_seconds,
                   "seconds that processes have after the first failure or a signal")
      ->transform(number<double>())
      ->capture_default_str();
  command->add_option("--link-delay", o->processes.link_delay,
                      "let messages take as long as over a link: milliseconds, or "
                      "milliseconds,MB/s");
  command->prefix_command();  // the rest belongs to the program
  command->callback([o, command, &tail, &chosen] {
    o->program = program_of(*command, "launch", tail);
    dist::check_launch(o->program, o->processes);
    chosen = *o;
  });
}

void add_slurm_submit(CLI::App& app, const Tail& tail, Command& chosen) {
  const auto o = std::make_shared<SlurmSubmitOptions>();
  dist::SlurmJob& job = o->job;
  auto* slurm = app.add_subcommand("slurm", "a distributed program under SLURM");
  slurm->require_subcommand(1);
  auto* command = slurm->add_subcommand(
      "submit", "write a batch script and submit it: binade slurm submit --nodes 2 -- program ...");
  const auto add_count = [command](const char* name, int& value, const char* help) {
    command->add_option(name, value, help)->transform(number<int>())->capture_default_str();
  };
  add_count("--nodes", job.nodes, "");
  add_count("--gpus", job.gpus, "of each node");
  add_count("--tasks", job.tasks, "ranks of each node; 0: one per GPU, or one");
  add_count("--cpus", job.cpus, "of each rank; 0: what the cluster gives");
  command->add_option("--name", job.name, "of the job");
  command->add_option("--time", job.time, "limit: 30 (minutes), 2:00:00, 1-12");
  command->add_option("--partition", job.partition);
  command->add_option("--array", job.array, "0-9%2; {array} in an argument is the task's number");
  command->add_option("--output", job.output, "file of what the ranks print");
  add_count("--requeue", job.requeue_seconds,
            "seconds before the limit at which the job goes back into the queue; 0: never");
  command->add_option("--sbatch", job.options, "another option of sbatch: --sbatch=--mem=64G")
      ->allow_extra_args(false);
  add_switch(command, "--dry-run", o->dry_run, "print the script");
  command->prefix_command();  // the rest belongs to the program
  command->callback([o, command, &tail, &chosen] {
    o->job.command = program_of(*command, "slurm submit", tail);
    dist::check_slurm_job(o->job);
    chosen = *o;
  });
}

void add_ring_lens(CLI::App& app, Command& chosen) {
  using Limits = dist::RingLensOptions;
  constexpr int64_t kMostElements = int64_t{1} << 28;
  const auto o = std::make_shared<RingLensOptions>();
  auto* command = app.add_subcommand(
      "ring-lens", "the error of every way to sum a tensor over ranks, hop by hop");
  auto* file =
      command->add_option("FILE", o->file, "a safetensors file; without it numbers are drawn")
          ->check(path());
  auto* name = command->add_option("NAME", o->name, "a tensor of it");
  command->add_option("--ranks", o->lens.ranks, "how many ranks")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(number<int>(Limits::kLeastRanks, Limits::kMostRanks))
      ->capture_default_str();
  auto* elements = command->add_option("--elements", o->elements, "to draw")
                       ->transform(number<int64_t>(1, kMostElements))
                       ->capture_default_str();
  auto* deviation = command->add_option("--deviation", o->deviation, "of what is drawn")
                        ->transform(number<double>(0, 1e30))
                        ->capture_default_str();
  command->add_option("--seed", o->lens.seed)->transform(number<uint64_t>())->capture_default_str();
  add_switch(command, "--json", o->json, "every hop of every choice, as JSON");
  command->callback([=, &chosen] {
    check(file->count() == name->count(),
          "ring-lens: got a file but no name of a tensor: binade ring-lens FILE NAME");
    check(file->count() == 0 || elements->count() + deviation->count() == 0,
          "ring-lens: --elements and --deviation have no effect with a file");
    chosen = *o;
  });
}

void add_bottleneck(CLI::App& app, const Tail& tail, Command& chosen) {
  const auto o = std::make_shared<BottleneckOptions>();
  auto* command = app.add_subcommand(
      "bottleneck",
      "run some steps of a program and say what to change first: binade bottleneck -- program ...");
  command->add_option("--steps", o->steps, "to record")
      ->transform(number<int64_t>(4, 100000))
      ->capture_default_str();
  command->add_option("--warmup", o->warmup, "steps before them")
      ->transform(number<int64_t>(0, 100000))
      ->capture_default_str();
  add_switch(command, "--no-trial", o->no_trial, "do not run the program again with the change");
  command->prefix_command();  // the rest belongs to the program
  command->callback([o, command, &tail, &chosen] {
    o->program = program_of(*command, "bottleneck", tail);
    check(!o->program.empty(),
          "bottleneck: got no program, expected binade bottleneck -- program arguments...");
    chosen = *o;
  });
}

void add_commands(CLI::App& app, const Tail& tail, Command& chosen) {
  app.set_version_flag("--version", "");
  app.require_subcommand(1);
  add_doctor(app, chosen);
  add_lens(app, chosen);
  add_replay(app, chosen);
  add_black_box(app, chosen);
  add_launch(app, tail, chosen);
  add_slurm_submit(app, tail, chosen);
  add_ring_lens(app, chosen);
  add_checksum(app, chosen);
  add_pack(app, chosen);
  add_inspect(app, chosen);
  add_report(app, chosen);
  add_diff(app, chosen);
  add_runs(app, chosen);
  add_watch(app, chosen);
  add_trace(app, chosen);
  add_bottleneck(app, tail, chosen);
  add_decode(app, chosen);
  add_verify_dataset(app, chosen);
  add_kernel(app, chosen);
  add_bench(app, chosen);
  add_format(app, chosen);
  app.add_subcommand("op-classes", "every op with its precision class: docs/op_classes.md")
      ->callback([&chosen] { chosen = OpClassesOptions{}; });
  app.footer(
      "Exit status: 0 success, 1 an error, or a check found something, 2 wrong command line. "
      "binade launch: that of the first process that failed.");
}

// Checks that a command with subcommands is followed by one of them or by a flag.
void check_names(CLI::App& app, const Words& words) {
  CLI::App* command = &app;
  for (size_t i = 0;; ++i) {
    const auto inner = command->get_subcommands([](CLI::App*) { return true; });
    const std::string word = i < words.size() ? words[i] : "";
    if (inner.empty() || command->get_option_no_throw(word) != nullptr) {
      return;
    }
    const auto named = std::find_if(inner.begin(), inner.end(),
                                    [&](const CLI::App* one) { return one->get_name() == word; });
    if (named != inner.end()) {
      command = *named;
      continue;
    }
    std::string names;
    for (const CLI::App* one : inner) {
      names += (names.empty() ? "" : ", ") + one->get_name();
    }
    fail(command == &app ? "" : command->get_name() + ": ", "got ",
         i < words.size() ? text("'", word, "'") : "no command", ", expected ", names);
  }
}

// Names the commands that were parsed so far: "slurm submit".
std::string command_of(const CLI::App& app) {
  std::string names;
  const CLI::App* command = &app;
  for (auto inner = app.get_subcommands(); !inner.empty(); inner = command->get_subcommands()) {
    command = inner.back();
    names += (names.empty() ? "" : " ") + command->get_name();
  }
  return names;
}

// Throws Error; a long message is shortened.
[[noreturn]] void refuse(const std::string& message, const std::string& command) {
  constexpr size_t kShown = 1000;
  const std::string whole = printable(message);
  const std::string shown = whole.substr(0, utf8_prefix(whole.substr(0, kShown)));
  fail(shown, shown.size() < whole.size() ? "..." : "", "; see binade ", command,
       command.empty() ? "" : " ", "--help");
}

}  // namespace

Command parse_command_line(const std::vector<std::string>& all) {
  Words words = all;
  const Tail tail = take_tail(words);
  Command chosen;
  CLI::App app{"Binade's tool", "binade"};
  add_commands(app, tail, chosen);
  try {
    check_names(app, words);
    // CLI11 would silently take "++" as the end of a subcommand.
    const bool ends =
        !takes_program(words[0]) && std::find(words.begin(), words.end(), "++") != words.end();
    check(!ends, words[0], ": got '++', which means nothing here; write ./++ for a path");
    std::reverse(words.begin(), words.end());  // the order that CLI11 expects
    app.parse(words);
    return chosen;
  } catch (const CLI::CallForVersion&) {
    return VersionOptions{};
  } catch (const CLI::Success& help) {
    std::ostringstream page;
    app.exit(help, page, page);
    return HelpOptions{page.str()};
  } catch (const CLI::Error& error) {
    const std::string command = command_of(app);
    refuse(text(command, command.empty() ? "" : ": ", std::string(error.what())), command);
  } catch (const Error& error) {
    refuse(error.what(), command_of(app));
  }
}

}  // namespace binade::tool
