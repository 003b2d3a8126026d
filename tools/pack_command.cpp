// binade pack: writes a data set to a packed store.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/data/sets/token_windows.h>
#include <binade/data/store/pack.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/model_file.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace binade::tool {
namespace {

// Prints progress on stderr at most once a second; a terminal shows only the last line.
class ProgressLine {
 public:
  void operator()(const data::PackProgress& progress) {
    const auto now = Clock::now();
    const bool is_end = progress.samples == progress.all_samples;
    if (now - last_ < std::chrono::seconds(1) && !(is_end && shown_)) {
      return;
    }
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "%spacked %lld of %lld samples, %.1f MB%s", terminal_ ? "\r" : "",
                 static_cast<long long>(progress.samples),
                 static_cast<long long>(progress.all_samples),
                 static_cast<double>(progress.bytes) / 1e6, terminal_ && !is_end ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  bool shown_ = false, terminal_ = ::isatty(STDERR_FILENO) == 1;
};

data::PackOptions options_of(const PackOptions& a) {
  data::PackOptions options;
  options.images = a.raw    ? data::PackImages::raw
                   : a.jpeg ? data::PackImages::jpeg
                            : data::PackImages::keep;
  options.quality = a.quality;
  if (a.width > 0) {
    options.transform = data::resize(a.height, a.width);
  } else if (a.height > 0) {
    options.transform = data::resize_short_side(a.height);
  }
  options.append = a.append;
  options.skip_bad = a.skip_bad;
  options.shard_bytes = a.shard_mebibytes << 20;
  options.progress = [line = ProgressLine()](const data::PackProgress& progress) mutable {
    line(progress);
  };
  return options;
}

data::PackResult pack_source(const PackOptions& a) {
  const data::PackOptions options = options_of(a);
  if (!a.tokens.empty()) {
    const auto type = a.tokens == "u16" ? data::TokenType::u16 : data::TokenType::u32;
    return data::pack(data::TokenWindows(a.source, {.context = a.context, .dtype = type}), a.store,
                      options);
  }
  if (file_kind(a.source) == "a directory") {
    return data::pack(data::open_dataset(a.source), a.store, options);
  }
  check(a.source.ends_with(".safetensors"), a.source, ": got ", file_kind(a.source),
        ", expected a folder, a file of tensors (.safetensors), or --tokens for token ids");
  check(!a.raw && !a.jpeg && a.height == 0,
        "pack: --raw, --jpeg and --resize have no effect on tensors");
  return data::pack(data::TensorDataset(train::load_tensors(a.source)), a.store, options);
}

}  // namespace

int run(const PackOptions& a) {
  const data::PackResult result = pack_source(a);
  for (const std::string& line : result.bad) {
    std::printf("left out: %s\n", printable(line).c_str());
  }
  std::printf("%s: %lld samples, %lld bytes%s\n", printable(a.store).c_str(),
              static_cast<long long>(result.samples), static_cast<long long>(result.bytes),
              a.append ? " more" : "");
  return result.bad.empty() ? 0 : 1;
}

}  // namespace binade::tool
