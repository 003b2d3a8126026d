// binade kernel: checks a file of plain CUDA C++ against a case, without a GPU.
#include "commands.h"

#include <binade/kernels/base/printable.h>
#include <binade/lab/driver/check.h>
#include <binade/lab/source/translate.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <tuple>

namespace binade::tool {
namespace {

constexpr int kUsageError = 2;

// Splits --case into the case and the shape; the name of a case file may contain a colon.
std::pair<std::string, std::string> case_and_shape(const KernelOptions& o) {
  const std::string& both = o.case_and_shape;
  const size_t colon = both.ends_with(".json") ? both.npos : both.rfind(':');
  if (colon == both.npos) {
    return {both, ""};
  }
  check(colon + 1 < both.size(), "kernel: got --case ", both,
        ", expected a shape after the colon, such as softmax:4096x1024");
  return {both.substr(0, colon), both.substr(colon + 1)};
}

void save(const std::string& path, const std::string& text) {
  if (path.empty()) {
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  check(!out.fail(), "kernel: cannot write ", path);
}

// Rejects a file of --json or --page that could not be written at the end.
void check_can_be_written(const char* flag, const std::string& path, const KernelOptions& o) {
  namespace fs = std::filesystem;
  if (path.empty()) {
    return;
  }
  std::error_code none;
  check(!fs::is_directory(path, none), "kernel: ", flag, " names the folder ", path,
        ", expected a file");
  for (const std::string& source : {o.file, case_and_shape(o).first}) {
    check(!fs::equivalent(path, source, none), "kernel: ", flag, " would overwrite ", source);
  }
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  check(fs::is_directory(folder, none), "kernel: cannot write ", path, ": there is no folder ",
        folder);
  const bool exists = fs::exists(path, none);
  if (exists && !fs::is_regular_file(path, none)) {  // opening a pipe waits for a reader
    check(::access(path.c_str(), W_OK) == 0, "kernel: cannot write ", path, ": ",
          std::strerror(errno));
    return;
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  check(file >= 0, "kernel: cannot write ", path, ": ", std::strerror(errno));
  ::close(file);
  if (!exists) {
    fs::remove(path, none);
  }
}

// Escapes control characters of names and sources, but keeps newlines.
std::string printable_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    out += printable(line) + "\n";
  }
  return out;
}

int report_error(const Error& error) {
  std::fputs(printable_lines(error.what()).c_str(), stderr);
  return kUsageError;
}

lab::CheckOptions check_options(const KernelOptions& o) {
  lab::CheckOptions options;
  options.file = o.file;
  std::tie(options.name, options.shape) = case_and_shape(o);
  options.compiler = o.compiler;
  options.counts = !o.no_counts;
  options.device_code = !o.no_counts && !o.no_nvcc && !o.watch;
  return options;
}

int check_once(const KernelOptions& o) {
  try {
    lab::CheckOptions options = check_options(o);
    const auto begin = std::chrono::steady_clock::now();
    options.on_first = [&](const std::string& line) {
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      std::printf("first, after %.1f s: %s\n", time.count(), printable(line).c_str());
      std::fflush(stdout);
    };
    options.on_verdict = [](const lab::Report& report) {
      std::fputs(printable_lines(lab::to_text(report)).c_str(), stdout);
      std::fflush(stdout);
    };
    const lab::Report report = lab::check_kernel(options);
    std::fputs(printable_lines(lab::to_text(report.device)).c_str(), stdout);
    save(o.json, lab::to_json(report));
    save(o.page, o.page.empty() ? "" : lab::to_page(report, lab::read_source(o.file)));
    return report.exit_status(o.strict);
  } catch (const Error& error) {  // nothing was checked
    return report_error(error);
  }
}

volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) {
  interrupted = 1;
  lab::interrupt_checks();
}

// Checks the file again whenever it changes, until the program is interrupted.
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
      if (interrupted != 0) {
        return status;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

}  // namespace

int run(const KernelOptions& o) {
  try {
    check_can_be_written("--json", o.json, o);
    check_can_be_written("--page", o.page, o);
    std::error_code none;
    check(o.json.empty() || o.page.empty() ||
              std::filesystem::weakly_canonical(o.json, none) !=
                  std::filesystem::weakly_canonical(o.page, none),
          "kernel: --json and --page name one file");
  } catch (const Error& error) {
    return report_error(error);
  }
  std::signal(SIGINT, note_interrupt);  // so that temporary files are removed
  std::signal(SIGTERM, note_interrupt);
  return o.watch ? watch(o) : check_once(o);
}

}  // namespace binade::tool
