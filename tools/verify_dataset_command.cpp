// binade verify-dataset: decodes all files of a data folder and reports the faults.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/data/sets/verify_dataset.h>

#include <unistd.h>

#include <cstdio>

namespace binade::tool {

int run(const VerifyDatasetOptions& o) {
  data::VerifyOptions options{.folder = {.seed = o.seed}};
  const bool shows = ::isatty(STDERR_FILENO) != 0;
  if (shows) {
    options.on_progress = [](int64_t done, int64_t total) {
      std::fprintf(stderr, "\r\033[K%lld of %lld samples", static_cast<long long>(done),
                   static_cast<long long>(total));
    };
  }
  const data::DatasetReport report = data::verify_dataset(o.folder, options);
  std::fputs(shows ? "\r\033[K" : "", stderr);
  const std::string json = to_json(report);
  if (!o.report.empty()) {
    write_file_durably(o.report, json);
  }
  std::fputs(o.json ? json.c_str() : to_string(report).c_str(), stdout);
  return report.is_clean() ? 0 : 1;
}

}  // namespace binade::tool
