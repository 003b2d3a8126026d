// Command lines of train_classifier, and the values that flags hold as text.
#include <binade/kernels/base/device.h>

#include "samples/train_classifier_flags.h"
#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {

// One word per line.
void parse_flags(Bytes bytes) {
  std::vector<std::string> words;
  std::string_view rest = text_of(bytes);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  classifier::Flags flags;
  CLI::App app;
  classifier::add_flags(app, flags);
  try {
    app.parse(words);
  } catch (const CLI::Error& error) {
    fail("flags: ", std::string(error.what()).substr(0, 1000));
  }
  require(flags.batch >= 1 && flags.epochs >= 1 && flags.lr > 0 && flags.momentum >= 0 &&
              flags.momentum <= 1 && flags.validation_split >= 0 && flags.validation_split <= 0.9,
          "a flag is in its range");
  classifier::check_combinations(app, flags);
  flags.overrides.clear();  // a path; parse_precision_file reads such files
  classifier::precision_of(flags);
  if (flags.loss_scale != "dynamic") {
    classifier::number("--loss-scale", flags.loss_scale, 0x1p-24, 0x1p24);
  }
  if (flags.workers != "auto") {
    classifier::number("--workers", flags.workers, 0, 256);
  }
  if (flags.device != "auto") {
    Device::parse(flags.device);
  }
}

}  // namespace binade::fuzz
