// binade bench: times kernels on raw memory, and compares builds.
#include <bench/bench_diff.h>
#include <bench/bench_run.h>
#include <bench/kernel_serve.h>
#include <binade/core/io/file_system.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "commands.h"

namespace binade::tool {
namespace {

constexpr int kDefaultSamples = 30, kDefaultRoundSamples = 7;

void list_kernels() {
  std::printf("%-32s %s\n", bench::kCopy, "rows x cols elements, by the runtime");
  for (const auto* cases : {&bench::kernel_cases(), &bench::model_cases()}) {
    for (const bench::KernelCase& one : *cases) {
      std::printf("%-32s %s\n", one.name, one.shape);
    }
  }
}

std::vector<bench::CaseSettings> cases_of(const BenchOptions& o,
                                          const std::vector<std::string>& words, Device device) {
  std::vector<bench::CaseSettings> cases;
  for (const std::string& word : words) {
    for (const std::string& dtype : o.dtypes) {
      bench::CaseSettings settings = bench::parse_case_word(word);
      settings.dtype = bench::parse_floating(dtype, "bench: --dtype");
      settings.device = device;
      settings.provider = o.provider;
      cases.push_back(settings);
    }
  }
  return cases;
}

std::vector<std::string> words_of(const BenchOptions& o) {
  if (!o.all) {
    return o.words;
  }
  std::vector<std::string> words;
  for (const bench::KernelCase& one : bench::kernel_cases()) {
    words.push_back(text(one.name, ":65x33"));
  }
  return words;
}

void write_text(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  check(!file.fail(), "bench: cannot write ", path);
}

int measure_all(const BenchOptions& o) {
  const Device device = Device::parse(o.device);
  const bench::RunSettings settings{.cases = cases_of(o, words_of(o), device),
                                    .samples = o.samples > 0 ? o.samples : kDefaultSamples,
                                    .warm = o.warm,
                                    .check_only = o.check_only};
  int failed = 0;
  const bench::BenchRecord record =
      bench::run_cases(settings, device, [&](const bench::CaseRecord& one) {
        failed += !one.error.empty();
        std::printf("%s\n", printable(o.check_only && one.error.empty()
                                          ? text(bench::case_name(one.settings), ": right (",
                                                 one.checked, ")")
                                          : bench::line_of(one))
                                .c_str());
        std::fflush(stdout);
      });
  if (!o.check_only) {
    std::printf("%s; %s, %d threads of %d cores, load %.2f; commit %s\n", record.cache.c_str(),
                printable(record.machine.device).c_str(), record.machine.threads,
                record.machine.cores, record.machine.load, record.machine.commit.c_str());
  }
  if (device.kind == Device::kEmulated) {
    std::puts("The emulated device runs kernels on the CPU: its times say nothing of a GPU.");
  }
  if (!o.json.empty()) {
    write_text(o.json, json_of(record));
  }
  if (!o.svg.empty()) {
    write_text(o.svg, roofline_svg(record));
  }
  check(failed == 0, "bench: ", failed, " of ", record.cases.size(), " cases failed");
  return 0;
}

bool is_record(const std::string& path) { return path.ends_with(".json"); }

bench::BenchRecord read_record(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "bench diff: cannot read ", path);
  std::ostringstream content;
  content << file.rdbuf();
  return bench::parse_bench_record(text("bench diff: ", path), content.str());
}

int print_diffs(const std::vector<bench::CaseDiff>& diffs, const bench::DiffSettings& settings) {
  int changed = 0;
  for (const bench::CaseDiff& one : diffs) {
    changed += one.changed;
    std::printf("%s\n", printable(line_of(one)).c_str());
  }
  std::printf("%d of %zu cases changed (by %.3g%% or more, and sure to %.3g%%)\n", changed,
              diffs.size(), 100 * settings.minimum, 100 * (1 - settings.level));
  return changed > 0 ? 1 : 0;
}

int diff_files(const BenchOptions& o, const bench::DiffSettings& settings) {
  check(o.cases.empty() && !o.rounds, "bench diff: --case and --rounds have no effect on files");
  const bench::BenchRecord before = read_record(o.words[1]), after = read_record(o.words[2]);
  const std::vector<bench::CaseDiff> diffs = diff_of_records(before, after, settings);
  std::puts(
      "Two files: their samples were not taken in turn, so what the machine did between them "
      "counts as a change.");
  if (const std::string differ = differing_facts(before, after); !differ.empty()) {
    std::printf("The files differ beside the commit, which counts as a change too: %s\n",
                printable(differ).c_str());
  }
  return print_diffs(diffs, settings);
}

int diff_all(const BenchOptions& o) {
  bench::DiffSettings settings;
  settings.minimum = o.minimum > 0 ? o.minimum / 100 : settings.minimum;
  const bool files = is_record(o.words[1]);
  check(files == is_record(o.words[2]),
        "bench diff: got a file and a build, expected two builds or "
        "two files of binade bench --json");
  if (files) {
    return diff_files(o, settings);
  }
  static const std::vector<std::string> kUsual = {"softmax_forward:1024x256", "add:1024x256",
                                                  "gemm:256x256", "layer_norm_forward:1024x256"};
  bench::BuildDiff builds{.before = bench::bench_program(o.words[1]),
                          .after = bench::bench_program(o.words[2])};
  builds.cases = cases_of(o, o.cases.empty() ? kUsual : o.cases, Device::parse(o.device));
  builds.device = o.device;
  builds.threads = o.threads;
  builds.rounds = o.rounds;
  builds.samples = o.samples > 0 ? o.samples : kDefaultRoundSamples;
  builds.plant = o.plant;
  return print_diffs(diff_of_builds(builds, settings), settings);
}

}  // namespace

int run(const BenchOptions& o) {
  kernels::set_threads(o.threads);
  if (o.list) {
    list_kernels();
    return 0;
  }
  if (o.serve) {
    bench::serve(std::cin, Device::parse(o.device));
    return 0;
  }
  return !o.words.empty() && o.words[0] == "diff" ? diff_all(o) : measure_all(o);
}

}  // namespace binade::tool
