// Images: each decoder alone, and decode_image(), which chooses one by the content.
#include <binade/data/decode_internal.h>
#include <binade/data/window/image_request.h>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

using data::DecodeOptions;
using data::Image;
using data::internal::DecodeRequest;

// Options that differ with the input, so that every path is reached: channels 0, 1, 3 or 4, and a
// JPEG at a smaller scale.
DecodeOptions options_for(Bytes bytes) {
  constexpr int kChannels[] = {0, 1, 3, 4};
  DecodeOptions options;
  options.channels = kChannels[bytes.size() % 4];
  options.target_side = bytes.size() % 8 >= 4 ? 4 : 0;
  options.limits.max_pixels = 1 << 18;
  options.limits.max_seconds = 4;
  return options;
}

void check_image(const Image& image, const DecodeOptions& options) {
  require(image.height >= 1 && image.width >= 1, "an image has a pixel");
  require(image.channels == (options.channels ? options.channels : image.channels) &&
              (image.channels == 1 || image.channels == 3 || image.channels == 4),
          "an image has the channels that were asked for");
  require(
      image.pixels.size() == size_t(image.height) * size_t(image.width) * size_t(image.channels),
      "an image has all its pixels");
}

// A window that differs with the input, sometimes with a resize: a file that is decoded in part has
// the same pixels and the same fate as one that is decoded as a whole.
void check_part(Bytes bytes, DecodeOptions options) {
  options.target_side = 0;
  const data::Transform cut =
      data::window([&](int height, int width, philox::Stream& random) -> data::Window {
        const auto below = [&](int bound) {
          return static_cast<int>(random.next_below(static_cast<uint32_t>(bound)));
        };
        data::Window window{.height = 1 + below(height), .width = 1 + below(width)};
        window.top = below(height - window.height + 1);
        window.left = below(width - window.width + 1);
        if (below(2) == 0) {
          window.out_height = 1 + below(9);
          window.out_width = 1 + below(9);
        }
        return window;
      });
  philox::Stream random(bytes.size(), bytes.empty() ? 0 : bytes.back()), same = random,
                                                                         other = random;
  Image whole, part;
  bool has_whole = false, has_part = false;
  try {
    whole = data::decode_image(bytes, "fuzz", options);
    cut(whole, random);
    has_whole = true;
  } catch (const Error&) {
  }
  try {
    part = data::ImageRequest(cut, same).decode(bytes, "fuzz", options);
    has_part = true;
  } catch (const Error&) {
  }
  require(has_whole == has_part, "a part of a file is accepted exactly if the whole is");
  require(part == whole, "a part has the pixels of the whole");
  if (has_whole) {
    data::ImageRequest(cut, other, 1).decode(bytes, "fuzz", options);  // at a reduced size
  }
}

// decode_image() calls a decoder only for files that begin as its format does.
template <class Decode>
void parse_with(Bytes bytes, bool begins, Decode decode) {
  check(begins, "fuzz: not a file of this format");
  const DecodeOptions options = options_for(bytes);
  check_image(decode(DecodeRequest{bytes, "fuzz", options}), options);
}

}  // namespace

void parse_image(Bytes bytes) {
  const DecodeOptions options = options_for(bytes);
  check_part(bytes, options);
  const Image image = data::decode_image(bytes, "fuzz", options);
  check_image(image, options);
  require(!data::image_format(bytes).empty(), "a format that is decoded has a name");
  const int orientation = data::image_orientation(bytes);
  require(orientation >= 1 && orientation <= 8, "a picture has one of 8 orientations");
  const MemoryFile file(bytes);
  require(data::read_image(file.path(), options) == image, "a file has the picture of its bytes");
}

void parse_jpeg(Bytes bytes) {
  const bool begins = text_of(bytes).starts_with("\xff\xd8");
  if (begins) {
    check_part(bytes, options_for(bytes));
  }
  parse_with(bytes, begins, data::internal::decode_jpeg);
}

void parse_png(Bytes bytes) {
  parse_with(bytes, text_of(bytes).starts_with("\x89PNG"), data::internal::decode_png);
}

void parse_bmp(Bytes bytes) {
  parse_with(bytes, text_of(bytes).starts_with("BM"), data::internal::decode_bmp);
}

void parse_pnm(Bytes bytes) {
  parse_with(bytes, data::internal::looks_like_pnm(bytes), data::internal::decode_pnm);
}

void parse_tga(Bytes bytes) {
  parse_with(bytes, data::internal::looks_like_tga(bytes), data::internal::decode_tga);
}

void parse_gif(Bytes bytes) {
  parse_with(bytes, text_of(bytes).starts_with("GIF8"), data::internal::decode_gif);
}

void parse_webp(Bytes bytes) {
  parse_with(bytes, data::internal::looks_like_webp(bytes), data::internal::decode_webp);
}

}  // namespace binade::fuzz
