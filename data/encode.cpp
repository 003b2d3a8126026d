// PNG by zlib: each row uses the filter of the five with the smallest sum of absolute differences
// (the usual heuristic). JPEG by libjpeg.
#include <binade/data/decode.h>
#include <binade/data/decode_png_internal.h>
#include <binade/data/encode.h>
#include <binade/kernels/base/error.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#ifdef BINADE_WITH_JPEG
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
#endif

namespace binade::data {
namespace {

using internal::paeth;

void check_image(const char* op, const Image& image, bool channels_fit, const char* channels) {
  check(channels_fit && image.height > 0 && image.width > 0, op, ": got an image of ", image.height,
        " x ", image.width, " x ", image.channels, ", expected at least 1 x 1 pixels of ", channels,
        " channels");
  check(image.pixels.size() == static_cast<size_t>(image.height) * image.width * image.channels, op,
        ": the image has ", image.pixels.size(), " bytes, expected height * width * channels");
}

void put_u32(std::vector<uint8_t>& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<uint8_t>(value >> shift));
  }
}

void put_chunk(std::vector<uint8_t>& out, std::string_view type, const std::vector<uint8_t>& data) {
  put_u32(out, static_cast<uint32_t>(data.size()));
  const size_t covered = out.size();
  out.insert(out.end(), type.begin(), type.end());
  out.insert(out.end(), data.begin(), data.end());
  put_u32(out, static_cast<uint32_t>(
                   ::crc32(0, &out[covered], static_cast<uInt>(out.size() - covered))));
}

// Appends the filter's number (0 none, 1 left, 2 up, 3 average, 4 Paeth) and the filtered row y.
void filter_row(const Image& image, int y, int filter, std::vector<uint8_t>& out) {
  const size_t bytes = static_cast<size_t>(image.width) * image.channels;
  const size_t pixel = static_cast<size_t>(image.channels);
  const uint8_t* row = image.row(y);
  const uint8_t* above = y > 0 ? image.row(y - 1) : nullptr;
  out.assign(1, static_cast<uint8_t>(filter));
  for (size_t i = 0; i < bytes; ++i) {
    const int left = i >= pixel ? row[i - pixel] : 0;
    const int up = above != nullptr ? above[i] : 0;
    const int corner = above != nullptr && i >= pixel ? above[i - pixel] : 0;
    const int guesses[5] = {0, left, up, (left + up) / 2, paeth(left, up, corner)};
    out.push_back(static_cast<uint8_t>(row[i] - guesses[filter]));
  }
}

std::vector<uint8_t> filter_rows(const Image& image) {
  std::vector<uint8_t> all, row, best;
  for (int y = 0; y < image.height; ++y) {
    int64_t best_cost = INT64_MAX;
    for (int filter = 0; filter < 5; ++filter) {
      filter_row(image, y, filter, row);
      int64_t cost = 0;
      for (size_t i = 1; i < row.size(); ++i) {
        cost += std::abs(static_cast<int8_t>(row[i]));
      }
      if (cost < best_cost) {
        best_cost = cost;
        best.swap(row);
      }
    }
    all.insert(all.end(), best.begin(), best.end());
  }
  return all;
}

}  // namespace

std::vector<uint8_t> encode_png(const Image& image, int level) {
  check_image("encode_png", image, image.channels >= 1 && image.channels <= 4, "1 to 4");
  check(level >= 0 && level <= 9, "encode_png: got level ", level, ", expected 0 to 9");
  const std::vector<uint8_t> rows = filter_rows(image);
  uLongf size = ::compressBound(static_cast<uLong>(rows.size()));
  std::vector<uint8_t> packed(size);
  const int status =
      ::compress2(packed.data(), &size, rows.data(), static_cast<uLong>(rows.size()), level);
  check(status == Z_OK, "encode_png: zlib gave error ", status);
  packed.resize(size);

  std::vector<uint8_t> header;
  put_u32(header, static_cast<uint32_t>(image.width));
  put_u32(header, static_cast<uint32_t>(image.height));
  // The colour types of grey, grey with alpha, RGB and RGBA.
  const uint8_t color_type = std::array<uint8_t, 4>{0, 4, 2, 6}[image.channels - 1];
  header.insert(header.end(), {8, color_type, 0, 0, 0});
  std::vector<uint8_t> out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", packed);
  put_chunk(out, "IEND", {});
  return out;
}

#ifdef BINADE_WITH_JPEG
namespace {

struct JpegWriterState {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  std::jmp_buf jump;
  unsigned char* buffer;
  unsigned long size;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_encode_error(j_common_ptr info) {
  auto* state = static_cast<JpegWriterState*>(info->client_data);
  info->err->format_message(info, state->message);
  std::longjmp(state->jump, 1);
}

// Owns no C++ object, because longjmp would skip its destructor.
bool write_jpeg(JpegWriterState* state, const Image* image, int quality) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_compress_struct& info = state->info;
  jpeg_create_compress(&info);
  info.client_data = state;
  jpeg_mem_dest(&info, &state->buffer, &state->size);
  info.image_width = static_cast<JDIMENSION>(image->width);
  info.image_height = static_cast<JDIMENSION>(image->height);
  info.input_components = image->channels;
  info.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image->row(static_cast<int>(info.next_scanline)));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  check_image("encode_jpeg", image, image.channels == 1 || image.channels == 3, "1 or 3");
  check(quality >= 1 && quality <= 100, "encode_jpeg: got quality ", quality,
        ", expected 1 to 100");
  JpegWriterState state{};
  state.info.err = jpeg_std_error(&state.errors);
  state.errors.error_exit = on_encode_error;
  state.info.client_data = &state;
  const bool done = write_jpeg(&state, &image, quality);
  jpeg_destroy_compress(&state.info);
  std::vector<uint8_t> out(state.buffer, state.buffer + (done ? state.size : 0));
  std::free(state.buffer);
  check(done, "encode_jpeg: ", state.message);
  return out;
}
#else
std::vector<uint8_t> encode_jpeg(const Image&, int) {
  fail("encode_jpeg: this build has no libjpeg; write PNG instead");
}
#endif

}  // namespace binade::data
