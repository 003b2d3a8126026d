// binade lens: what the exponent lens saw in a run, as text or as a page.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/train/lens_report.h>

#include <cstdio>

namespace binade::tool {

int run(const LensOptions& o) {
  const bool is_run = file_kind(o.run) == "a directory";
  const auto report = train::read_lens(is_run ? o.run + "/lens.jsonl" : o.run);
  if (o.page.empty()) {
    std::fputs(train::to_text(report).c_str(), stdout);
  } else {
    write_file_durably(o.page, train::to_html(report));
  }
  return 0;
}

}  // namespace binade::tool
