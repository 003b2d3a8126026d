// JPEG by libjpeg-turbo. Every warning is an error, so a truncated or damaged stream that the
// library notices never gives a picture. The functions with setjmp own no C++ object: longjmp would
// skip destructors. Without libjpeg-turbo, stb_image decodes after checks of the size and the end
// marker.
#include <binade/data/decode_internal.h>

#include <algorithm>

#ifdef BINADE_WITH_JPEG
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>
#endif

namespace binade::data {

#ifdef BINADE_WITH_JPEG

bool has_libjpeg() { return true; }

namespace internal {
namespace {

// Plain data only: it lives across longjmp.
struct JpegState {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  const DecodeRequest* request;
  bool too_many_scans, too_slow;
  char message[JMSG_LENGTH_MAX];
};

JpegState* state_of(j_common_ptr info) { return static_cast<JpegState*>(info->client_data); }

[[noreturn]] void on_error(j_common_ptr info) {
  JpegState* state = state_of(info);
  info->err->format_message(info, state->message);
  std::longjmp(state->jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level < 0) {
    on_error(info);
  }
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr info) {
  JpegState* state = state_of(info);
  const DecodeLimits& limits = state->request->options.limits;
  state->too_many_scans = state->info.input_scan_number > limits.max_scans;
  state->too_slow = state->request->seconds() > limits.max_seconds;
  if (state->too_many_scans || state->too_slow) {
    std::longjmp(state->jump, 1);
  }
}

bool read_header(JpegState* state, const uint8_t* bytes, size_t size) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_create_decompress(&state->info);
  state->info.client_data = state;  // the call above cleared it
  state->info.progress = &state->progress;
  jpeg_mem_src(&state->info, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(&state->info, TRUE);
  return true;
}

// Sets the output colour space and scale, and computes the output size.
bool choose_output(JpegState* state, bool grey, int target_side) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_decompress_struct& info = state->info;
  const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four ? JCS_CMYK : (grey ? JCS_GRAYSCALE : JCS_RGB);
  info.scale_num = 1;
  info.scale_denom = 1;
  const JDIMENSION side = std::min(info.image_width, info.image_height);
  for (unsigned denominator = 8; target_side > 0 && denominator > 1; denominator /= 2) {
    if (side / denominator >= static_cast<JDIMENSION>(target_side)) {
      info.scale_denom = denominator;
      break;
    }
  }
  jpeg_calc_output_dimensions(&info);
  return true;
}

// Decodes all rows to `pixels` [output_height, output_width, output_components].
bool read_pixels(JpegState* state, uint8_t* pixels) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_decompress_struct& info = state->info;
  jpeg_start_decompress(&info);
  const size_t row_bytes = static_cast<size_t>(info.output_width) * info.output_components;
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + row_bytes * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);  // reads up to the end marker
  return true;
}

class JpegReader {
 public:
  explicit JpegReader(const DecodeRequest& request) : request_(request) {
    state_.info.err = jpeg_std_error(&state_.errors);
    state_.errors.error_exit = on_error;
    state_.errors.emit_message = on_message;
    state_.errors.output_message = on_output;
    state_.info.client_data = &state_;
    state_.progress.progress_monitor = on_progress;
    state_.request = &request;
  }
  ~JpegReader() { jpeg_destroy_decompress(&state_.info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // In the colours of the file: 1 grey, 3 RGB, 4 CMYK.
  Image read() {
    expect(read_header(&state_, request_.bytes.data(), request_.bytes.size()));
    jpeg_decompress_struct& info = state_.info;
    check_size(request_, info.image_height, info.image_width);
    const bool grey = request_.channels(info.num_components == 1 ? 1 : 3) == 1;
    expect(choose_output(&state_, grey, request_.options.target_side));
    Image image = make_image(static_cast<int>(info.output_height),
                             static_cast<int>(info.output_width), info.out_color_components);
    expect(read_pixels(&state_, image.pixels.data()));
    return image;
  }
  // Adobe programs store CMYK inverted and write their own marker.
  bool inverted() const { return state_.info.saw_Adobe_marker != 0; }

 private:
  void expect(bool done) const {
    if (state_.too_many_scans) {
      request_.reject("JPEG with more than ", request_.options.limits.max_scans,
                      " scans, the limit (DecodeLimits::max_scans)");
    }
    if (state_.too_slow) {
      request_.check_time();
    }
    if (!done) {
      request_.reject("corrupt, truncated or unsupported JPEG: ", state_.message);
    }
  }

  const DecodeRequest& request_;
  JpegState state_{};
};

Image cmyk_to_rgb(const Image& cmyk, bool inverted) {
  Image rgb = make_image(cmyk.height, cmyk.width, 3);
  const size_t pixels = static_cast<size_t>(cmyk.height) * cmyk.width;
  const int flip = inverted ? 0 : 255;
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* from = &cmyk.pixels[4 * i];
    const int black = from[3] ^ flip;
    for (size_t c = 0; c < 3; ++c) {
      rgb.pixels[3 * i + c] = static_cast<uint8_t>(((from[c] ^ flip) * black + 127) / 255);
    }
  }
  return rgb;
}

}  // namespace

Image decode_jpeg(const DecodeRequest& request) {
  JpegReader reader(request);
  Image image = reader.read();
  const int channels = request.channels(image.channels == 1 ? 1 : 3);
  if (image.channels == 4) {
    image = cmyk_to_rgb(image, reader.inverted());
  }
  return convert_channels(std::move(image), channels);
}

}  // namespace internal

#else

bool has_libjpeg() { return false; }

namespace internal {

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

}  // namespace internal

#endif

}  // namespace binade::data
