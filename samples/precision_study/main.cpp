// The claims of "Mixed Precision Training" (Micikevicius et al., ICLR 2018) as experiments with
// bounds: runs them and writes a page of figures. `precision_study --help` lists the flags.
//
// Where to read: experiments.cpp has the list, each experiment is in a file of its own, and
// training.cpp is the one training loop. The status is 0 if all bounds hold, 1 if one does not, 2
// if the study could not run.
#include <binade/core/io/program_streams.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/kernels/base/math_mode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "page.h"

using namespace study;

namespace {

struct Flags {
  std::string run = "runs/precision_study", data, only, broken, device = "auto";
  int threads = 0;
  bool list = false;
};

void list() {
  for (const Experiment* e : experiments()) {
    std::printf("%-18s %s (%s)\n", e->name, e->title, e->section);
  }
}

void check_name(const char* flag, const std::string& name) {
  std::string known;
  for (const Experiment* e : experiments()) {
    if (name == e->name) {
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(e->name);
  }
  throw Error(std::string(flag) + ": got '" + name + "', expected one of " + known);
}

Outcome perform(const Experiment& experiment, const Lab& lab) {
  Outcome outcome{.experiment = &experiment, .report = {}, .error = {}};
  const std::clock_t cpu = std::clock();
  timespec begin{}, end{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  try {
    experiment.run(lab, outcome.report);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  outcome.cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  outcome.seconds = static_cast<double>(end.tv_sec - begin.tv_sec) +
                    1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  return outcome;
}

void print(const Outcome& outcome) {
  std::printf("%-18s %s  %.1f s\n", outcome.experiment->name, outcome.holds() ? "holds" : "FAILS",
              outcome.seconds);
  for (const Check& check : outcome.report.checks) {
    std::printf("  %s %s: %s, bound %s%s\n", check.holds() ? "    " : "FAIL", check.what.c_str(),
                number(check.value).c_str(), check.bound().c_str(),
                check.by_mechanism ? " (by the mechanism)" : "");
  }
  for (const Table& table : outcome.report.tables) {
    std::vector<std::vector<std::string>> rows{table.head};
    rows.insert(rows.end(), table.rows.begin(), table.rows.end());
    std::printf("\n%s\n%s\n", table.caption.c_str(), text_table(rows).c_str());
  }
  if (!outcome.error.empty()) {
    std::printf("  FAIL %s\n", outcome.error.c_str());
  }
  std::fflush(stdout);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  check(!file.fail(), path, ": cannot be written");
}

// Returns whether every bound held.
bool run(const Flags& flags) {
  set_threads(flags.threads);
  set_math_mode(MathMode::precise);
  const std::string& only = flags.broken.empty() ? flags.only : flags.broken;
  check(flags.only.empty() || flags.broken.empty() || flags.only == flags.broken,
        "--break runs one experiment: got --only ", flags.only, " and --break ", flags.broken);
  if (!only.empty()) {
    check_name(flags.broken.empty() ? "--only" : "--break", only);
  }
  const Device device = Device::parse(flags.device);
  Data data(flags.data, device);
  std::printf("on %s\n", describe(device).c_str());
  std::filesystem::create_directories(flags.run);
  Study study{.outcomes = {},
              .pictures = data.pictures().source,
              .text = data.text().source,
              .device = describe(device),
              .broken = flags.broken};
  for (const Experiment* experiment : experiments()) {
    if (only.empty() || only == experiment->name) {
      study.outcomes.push_back(perform(*experiment, {data, !flags.broken.empty()}));
      print(study.outcomes.back());
    }
  }
  if (!flags.broken.empty()) {
    const std::string powerless = study.outcomes.front().report.powerless();
    std::printf("%s\n", powerless.empty() ? "every check of the mechanism fails without it"
                                          : ("holds without the mechanism: " + powerless).c_str());
  }
  write(flags.run + "/index.html", to_html(study));
  write(flags.run + "/results.json", to_json(study));
  const auto held = std::count_if(study.outcomes.begin(), study.outcomes.end(),
                                  [](const Outcome& outcome) { return outcome.holds(); });
  std::printf("%d of %d hold; the page is %s/index.html\n", static_cast<int>(held),
              static_cast<int>(study.outcomes.size()), flags.run.c_str());
  return held == static_cast<std::ptrdiff_t>(study.outcomes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const ProgramStreams streams;
  Flags flags;
  CLI::App app("Puts the claims of \"Mixed Precision Training\" (ICLR 2018) to the test.");
  app.add_option("--run", flags.run, "Where index.html and results.json are written")
      ->capture_default_str();
  app.add_option("--data", flags.data,
                 "Folder with idx files (also in mnist, fashion-mnist) or input.txt (also in "
                 "tinyshakespeare); what is missing is drawn");
  app.add_flag("--list", flags.list, "Print the experiments and their claims");
  app.add_option("--only", flags.only, "Run one experiment");
  app.add_option("--break", flags.broken,
                 "Run one experiment with its mechanism switched off: it must fail");
  app.add_option("--device", flags.device, "auto, cpu, cuda[:N] or emulated")
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads; 0: as many as there are cores")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
    if (flags.list) {
      list();
      return streams.finish(0);
    }
    return streams.finish(run(flags) ? 0 : 1);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    print_error(error);
    return 2;
  }
}
