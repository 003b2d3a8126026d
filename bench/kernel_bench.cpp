// The program of bench/one: checks one kernel on raw memory (case_check.h) and times it next to a
// copy of as many bytes; or times many kernels (kernel_serve.h) without checks.
#include <bench/case_check.h>
#include <bench/kernel_serve.h>
#include <binade/kernels/base/parallel.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <sstream>

using namespace binade;

namespace {

struct Flags {
  std::string kernel, dtype = "f32", device = "auto", provider, cases;
  int64_t rows = 4096, cols = 1024;
  int samples = 15, threads = 0;
  bool list = false, json = false, serve = false, small = false, unchecked = false;
};

void print_line(const bench::CaseSettings& s, const bench::Measured& m) {
  std::printf(
      "%s %lld x %lld %s on %s: %.2f us (quartiles %.2f apart), %.1f GB/s = %.0f%% of a copy",
      s.kernel.c_str(), static_cast<long long>(s.rows), static_cast<long long>(s.cols),
      to_string(s.dtype), to_string(s.device).c_str(), m.seconds * 1e6, m.spread * 1e6,
      m.bytes / m.seconds * 1e-9, 100 * m.share_of_copy);
  if (m.flops > 0) {
    std::printf(", %.1f GFLOP/s", m.flops / m.seconds * 1e-9);
  }
  std::printf("\n");
  if (s.device.kind == Device::kEmulated) {
    std::printf(
        "the emulated device executes kernels on the CPU: its times say nothing of a GPU\n");
  }
}

std::vector<DType> parse_dtypes(const std::string& names) {
  std::vector<DType> dtypes;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    dtypes.push_back(bench::parse_floating(name, "--dtype"));
  }
  check(!dtypes.empty(), "--dtype: expected f64, f32, f16 or bf16");
  return dtypes;
}

void check_result(const Flags& flags, const bench::CaseSettings& settings) {
  if (flags.unchecked || settings.kernel == bench::kCopy) {
    return;
  }
  const bench::CaseCheck checked = bench::check_case(bench::prepare(settings), settings);
  check(checked.ok, settings.kernel, ": wrong, against ", checked.against, ": ", checked.wrong);
}

int run(const Flags& flags) {
  kernels::set_threads(flags.threads);
  const Device device = Device::parse(flags.device);
  if (flags.serve) {
    bench::serve(std::cin, device);
    return 0;
  }
  const std::vector<DType> dtypes = parse_dtypes(flags.dtype);
  if (!flags.cases.empty()) {
    return bench::run_list({.file = flags.cases,
                            .small = flags.small,
                            .dtypes = dtypes,
                            .device = device,
                            .samples = flags.samples}) == 0
               ? 0
               : 1;
  }
  check(dtypes.size() == 1, "--dtype: got ", dtypes.size(), ", expected one without --cases");
  const bench::CaseSettings settings{.kernel = flags.kernel,
                                     .rows = flags.rows,
                                     .cols = flags.cols,
                                     .dtype = dtypes[0],
                                     .device = device,
                                     .provider = flags.provider};
  check_result(flags, settings);
  const bench::Measured measured = bench::measure(settings, flags.samples);
  if (flags.json) {
    std::printf("%s\n", bench::json_of(settings, measured).c_str());
  } else {
    print_line(settings, measured);
  }
  return 0;
}

void list_cases() {
  std::printf("%-32s %s\n", bench::kCopy, "rows x cols elements, by the runtime");
  for (const auto* cases : {&bench::kernel_cases(), &bench::model_cases()}) {
    for (const bench::KernelCase& one : *cases) {
      std::printf("%-32s %s\n", one.name, one.shape);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Times one kernel on raw memory.");
  app.add_option("kernel", flags.kernel, "see --list");
  app.add_option("--rows", flags.rows)->capture_default_str();
  app.add_option("--cols", flags.cols)->capture_default_str();
  app.add_option("--dtype", flags.dtype, "f64, f32, f16 or bf16; with --cases a list: f16,f32")
      ->capture_default_str();
  app.add_option("--provider", flags.provider, "own, library, auto or another of its operation");
  app.add_option("--cases", flags.cases, "runs the cases of this file, one JSON object a line");
  app.add_flag("--small", flags.small, "the small sizes of the file");
  app.add_flag("--serve", flags.serve, "runs what is asked for on the standard input");
  app.add_option("--device", flags.device, "auto, cpu, cuda[:N] or emulated")
      ->capture_default_str();
  app.add_option("--samples", flags.samples)->capture_default_str();
  app.add_option("--threads", flags.threads, "of the CPU; 0: all")->capture_default_str();
  app.add_flag("--no-check", flags.unchecked,
               "of one kernel: do not compare its result with f64 on the CPU first");
  app.add_flag("--list", flags.list, "the kernels and what rows and cols mean");
  app.add_flag("--json", flags.json, "one JSON object");
  try {
    app.parse(argc, argv);
    if (flags.list || (flags.kernel.empty() && flags.cases.empty() && !flags.serve)) {
      list_cases();
      return 0;
    }
    return run(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
}
