// binade kernel: checks a file of plain CUDA C++ against a case, without a GPU.
#include "commands.h"

#include <binade/kernels/base/printable.h>
#include <binade/lab/driver/check.h>
#include <binade/lab/source/translate.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace binade::tool {
namespace {

constexpr int kUsageError = 2;

void save(const std::string& path, const std::string& text) {
  if (path.empty()) {
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  check(!out.fail(), "kernel: cannot write ", path);
}

// Control characters of names and sources are escaped, ends of lines are not.
std::string printable_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    out += printable(line) + "\n";
  }
  return out;
}

lab::CheckOptions check_options(const KernelOptions& o) {
  lab::CheckOptions options;
  options.file = o.file;
  const size_t colon = o.case_and_shape.rfind(':');
  options.name = o.case_and_shape.substr(0, colon);
  options.shape = colon == std::string::npos ? "" : o.case_and_shape.substr(colon + 1);
  options.compiler = o.compiler;
  options.counts = !o.no_counts;
  return options;
}

int check_once(const KernelOptions& o) {
  try {
    const lab::Report report = lab::check_kernel(check_options(o));
    std::fputs(printable_lines(lab::to_text(report)).c_str(), stdout);
    save(o.json, lab::to_json(report));
    save(o.page, o.page.empty() ? "" : lab::to_page(report, lab::read_source(o.file)));
    return report.exit_status(o.strict);
  } catch (const Error& error) {  // nothing was checked
    std::fputs(printable_lines(error.what()).c_str(), stderr);
    return kUsageError;
  }
}

// Checks again whenever the file changes, until the program is ended.
int watch(const KernelOptions& o) {
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    std::error_code ignored;
    const auto changed = std::filesystem::last_write_time(o.file, ignored);
    const int status = check_once(o);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    std::printf("exit %d after %.1f s; waiting for a change of %s\n", status, time.count(),
                o.file.c_str());
    std::fflush(stdout);
    while (std::filesystem::last_write_time(o.file, ignored) == changed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace

int run(const KernelOptions& o) { return o.watch ? watch(o) : check_once(o); }

}  // namespace binade::tool
