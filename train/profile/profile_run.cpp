// The profiler of programs: where its files go.
#include <binade/core/io/file_system.h>
#include <binade/core/observe/warning.h>
#include <binade/kernels/base/error.h>
#include <binade/train/profiler.h>
#include <binade/train/report/run_report.h>

#include <cstdlib>
#include <filesystem>

namespace binade::train {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// "trace.json" of rank 2: "trace-rank2.json"
std::string of_rank(const std::string& file, int rank) {
  if (rank == 0) {
    return file;
  }
  const std::filesystem::path path(file);
  return (path.parent_path() / path.stem()).string() + "-rank" + std::to_string(rank) +
         path.extension().string();
}

}  // namespace

std::unique_ptr<Profiler> profile_run(const std::string& window, const std::string& run, int rank) {
  const std::string wanted = window.empty() ? environment("BINADE_PROFILE") : window;
  if (wanted.empty() || Profiler::current()) {
    return nullptr;
  }
  ProfilerOptions options;
  options.window(parse_profile_window(wanted));
  options.rank = rank;
  const std::string file = window.empty() ? environment("BINADE_PROFILE_FILE") : "";
  const std::string folder = run.empty() ? "." : run;
  options.file = of_rank(file.empty() ? folder + "/trace.json" : file, rank);
  if (file.empty() && rank == 0) {
    options.flame = folder + "/flame.svg";
    options.tensorboard = folder + "/tensorboard";
  }
  return std::make_unique<Profiler>(std::move(options));
}

void finish_profile(Profiler* profiler, const std::string& run) {
  if (!profiler) {
    return;
  }
  const int64_t before = profiler->windows();
  profiler->finish();
  const bool is_new = profiler->windows() > before && profiler->file() == run + "/trace.json";
  if (is_new && !run.empty() && file_kind(run + "/report.html") == "a regular file") {
    try {
      write_report(run);
    } catch (const std::exception& error) {
      warn(text("report.html: ", error.what()));
    }
  }
}

}  // namespace binade::train
