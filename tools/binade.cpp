// binade: the command-line tool. binade doctor shows what a build can do on this machine, or with
// --security what listens, binade
// lens shows what the exponent lens saw in a run, binade launch starts the processes of a
// distributed program, binade slurm submit submits one to SLURM, binade ring-lens shows what an
// all-reduce does to numbers, binade checksum finds changed files of a data folder, binade
// inspect lists what a model file or a checkpoint holds, binade op-classes writes
// docs/op_classes.md.
#include "commands.h"
#include "doctor.h"

#include <binade/core/io/file_system.h>
#include <binade/core/io/program_streams.h>
#include <binade/core/precision/op_class.h>
#include <binade/train/lens_report.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

binade::Tail tail_of(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const auto separator = std::find(argv, argv + argc, std::string_view("--"));
  if (separator == argv + argc || (command != "launch" && command != "slurm")) {
    return {};
  }
  return {true, {separator + 1, argv + argc}};
}

int tail_length(const binade::Tail& tail) {
  return tail.separated ? static_cast<int>(tail.words.size()) + 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const binade::ProgramStreams streams;
  CLI::App app{"Binade's tool"};
  app.set_version_flag("--version", BINADE_VERSION);
  app.require_subcommand(1);
  int result = 0;
  bool security = false;
  std::string inspected;
  auto* doctor =
      app.add_subcommand("doctor", "what this build is made of, and which device programs use");
  auto* asked = doctor->add_flag(
      "--security", security,
      "what ranks listen at, where their secret comes from, and who may change files; status 1 if "
      "something is not safe");
  doctor->add_option("--run", inspected, "the run directory to look at")->needs(asked);
  doctor->callback(
      [&] { result = security ? binade::run_security_doctor(inspected) : binade::run_doctor(); });
  std::string run, page;
  auto* lens = app.add_subcommand(
      "lens", "the heat map of layers and exponents of a run, and the static loss scale it bears");
  lens->add_option("DIR", run, "the run, or its lens.jsonl")->required();
  lens->add_option("--html", page, "write the page there instead");
  lens->callback([&] {
    const bool is_run = std::filesystem::is_directory(run);
    const auto report = binade::train::read_lens(is_run ? run + "/lens.jsonl" : run);
    if (page.empty()) {
      std::fputs(binade::train::to_text(report).c_str(), stdout);
    } else {
      binade::write_file_durably(page, binade::train::to_html(report));
    }
  });
  const binade::Tail tail = tail_of(argc, argv);
  binade::add_launch(app, tail, result);
  binade::add_slurm(app, tail, result);
  binade::add_ring_lens(app);
  binade::add_checksum(app, result);
  binade::add_inspect(app, result);
  app.add_subcommand("op-classes", "every op with its precision class: docs/op_classes.md")
      ->callback([] { std::fputs(binade::op_classes_page().c_str(), stdout); });
  try {
    app.parse(argc - tail_length(tail), argv);
  } catch (const CLI::ParseError& error) {
    constexpr int kUsage = 2;
    return streams.finish(app.exit(error) == 0 ? 0 : kUsage);
  } catch (const std::exception& error) {
    binade::print_error(error);
    return 1;
  }
  return streams.finish(result);
}
