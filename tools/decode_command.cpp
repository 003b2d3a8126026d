// binade decode: writes the pixels of an image file as raw RGBA bytes, and a line about the image.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/data/decode.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace binade::tool {
namespace {

std::string facts_of(const DecodeOptions& o, const std::vector<uint8_t>& bytes,
                     const data::Image& image, double seconds) {
  constexpr double kMilliseconds = 1000;
  return text(
      printable(o.file), ": ", data::image_format(bytes), ", ", image.width, " x ", image.height,
      ", orientation ", data::image_orientation(bytes), o.keep_orientation ? " (kept), " : ", ",
      bytes.size(), " bytes, ", image.pixels.size(), " of pixels, decoded in ",
      static_cast<double>(static_cast<int64_t>(seconds * kMilliseconds * 100)) / 100, " ms");
}

}  // namespace

int run(const DecodeOptions& o) {
  data::DecodeOptions options{.channels = 4, .apply_orientation = !o.keep_orientation};
  const std::vector<uint8_t> bytes = data::read_file(o.file, options.limits.max_file_bytes);
  const auto start = std::chrono::steady_clock::now();
  const data::Image image = data::decode_image(bytes, o.file, options);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  const std::string facts = facts_of(o, bytes, image, spent.count());
  if (!o.output.empty()) {
    write_file_durably(o.output,
                       {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
    std::printf("%s\n", facts.c_str());
  } else if (o.facts_only || ::isatty(STDOUT_FILENO) != 0) {
    std::printf("%s\n", facts.c_str());
  } else {
    const size_t written = std::fwrite(image.pixels.data(), 1, image.pixels.size(), stdout);
    check(written == image.pixels.size(), "decode: cannot write ", image.pixels.size(),
          " bytes to the standard output");
    std::fprintf(stderr, "%s\n", facts.c_str());
  }
  return 0;
}

}  // namespace binade::tool
