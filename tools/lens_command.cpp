// binade lens: shows the exponents that a run recorded, as text or as a page.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/train/lens_report.h>

#include <cstdio>

namespace binade::tool {

namespace {

train::LensReport read_run(const std::string& run) {
  return train::read_lens(file_kind(run) == "a directory" ? run + "/lens.jsonl" : run);
}

}  // namespace

int run(const LensOptions& o) {
  if (!o.others.empty()) {
    std::vector<train::NamedLens> runs{{o.run, read_run(o.run)}};
    for (const std::string& other : o.others) {
      runs.push_back({other, read_run(other)});
    }
    write_file_durably(o.page, train::to_html(runs));
    return 0;
  }
  const train::LensReport report = read_run(o.run);
  if (o.page.empty()) {
    std::fputs(train::to_text(report).c_str(), stdout);
  } else {
    write_file_durably(o.page, train::to_html(report));
  }
  return 0;
}

}  // namespace binade::tool
