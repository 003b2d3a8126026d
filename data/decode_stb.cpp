// JPEG in builds without libjpeg-turbo; only this file compiles stb_image. The file's structure and
// size are checked before every call. Every allocation is limited to what the checked size can
// need, so a stream that decodes to more than its header declares gives an error instead of using
// up memory. The time limit is checked only after the call.
#include <binade/data/decode_internal.h>

#ifndef BINADE_WITH_JPEG

#include <cstdlib>
#include <limits>
#include <memory>

namespace {

constinit thread_local size_t stb_allocation_limit = 0;

void* stb_allocate(size_t bytes) {
  return bytes <= stb_allocation_limit ? std::malloc(bytes) : nullptr;
}
void* stb_reallocate(void* old, size_t bytes) {
  return bytes <= stb_allocation_limit ? std::realloc(old, bytes) : nullptr;
}

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_GIF
#define STBI_NO_PSD
#define STBI_NO_HDR
#define STBI_NO_PIC
#define STBI_NO_PNM
#define STBI_NO_LINEAR
#define STBI_NO_STDIO
#define STBI_NO_PNG
#define STBI_NO_BMP
#define STBI_NO_TGA
#define STBI_FAILURE_USERMSG
#define STBI_MAX_DIMENSIONS (1 << 20)
#define STBI_MALLOC(size) stb_allocate(size)
#define STBI_REALLOC(pointer, size) stb_reallocate(pointer, size)
#define STBI_FREE(pointer) std::free(pointer)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace binade::data::internal {

Image decode_with_stb(const DecodeRequest& request, int64_t height, int64_t width, int channels) {
  // The largest block has up to 4 channels of 2-byte coefficients in whole 8x8 blocks; the limit is
  // generous, and kSlack covers small pictures.
  constexpr size_t kSlack = 1 << 18;
  const size_t pixels = static_cast<size_t>(height) * static_cast<size_t>(width);
  const size_t size = request.bytes.size();
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    request.reject("the file has ", size, " bytes, the decoder takes at most 2147483647");
  }
  stb_allocation_limit = 16 * pixels + 2 * size + kSlack;

  int got_width = 0, got_height = 0, in_file = 0;
  const std::unique_ptr<uint8_t, void (*)(void*)> pixels_out(
      stbi_load_from_memory(request.bytes.data(), static_cast<int>(size), &got_width, &got_height,
                            &in_file, channels),
      std::free);
  if (pixels_out == nullptr) {
    const char* reason = stbi_failure_reason();
    request.reject("cannot decode: ", reason != nullptr ? reason : "unknown reason");
  }
  request.check_time();
  if (got_width != width || got_height != height) {
    request.reject("cannot decode: the header says ", width, " x ", height, ", the decoder ",
                   got_width, " x ", got_height);
  }
  const uint8_t* data = pixels_out.get();
  return {got_height, got_width, channels,
          std::vector<uint8_t>(data, data + pixels * static_cast<size_t>(channels))};
}

Image decode_jpeg(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  size_t end = bytes.size();
  while (end > 4 && bytes[end - 1] == 0) {
    --end;  // padding
  }
  if (end < 4 || bytes[end - 2] != 0xff || bytes[end - 1] != 0xd9) {
    request.reject("truncated JPEG: no end marker");
  }
  for (size_t at = 2; at + 10 <= end && bytes[at] == 0xff;) {
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xff) {
      ++at;
      continue;
    }
    const bool frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) {
      const int64_t height = read_u16_be(&bytes[at + 5]), width = read_u16_be(&bytes[at + 7]);
      check_size(request, height, width);
      return decode_with_stb(request, height, width, request.channels(bytes[at + 9] == 1 ? 1 : 3));
    }
    at += 2 + read_u16_be(&bytes[at + 2]);
  }
  request.reject("corrupt JPEG: no frame header");
}

bool can_decode_part(std::span<const uint8_t>) { return false; }

Image decode_part(std::span<const uint8_t> bytes, std::string_view path,
                  const DecodeOptions& options, ImageRequest& wanted) {
  return wanted.apply(decode_image(bytes, path, options));
}

}  // namespace binade::data::internal

namespace binade::data {

bool has_libjpeg() { return false; }

}  // namespace binade::data

#endif
