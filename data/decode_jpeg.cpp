// JPEG by libjpeg-turbo. Every warning is an error, so a truncated or damaged stream that the
// library notices never gives a picture. The stream is read to its end marker even if only a part
// of its pixels is wanted. The functions with setjmp own no C++ object, because longjmp would skip
// its destructor.
#include <binade/data/decode_internal.h>
#include <binade/data/transforms.h>
#include <binade/data/window/geometry_internal.h>

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

// Holds plain data only, because it lives across longjmp.
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

[[noreturn]] void on_decode_error(j_common_ptr info) {
  JpegState* state = state_of(info);
  info->err->format_message(info, state->message);
  std::longjmp(state->jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level < 0) {
    on_decode_error(info);
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

bool read_jpeg_header(JpegState* state, const uint8_t* bytes, size_t size) {
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

// The largest reduction that keeps both sides at least `target_side` long; 0: keep the full size.
unsigned denominator_for(const jpeg_decompress_struct& info, int target_side) {
  const JDIMENSION side = std::min(info.image_width, info.image_height);
  for (unsigned denominator = 8; target_side > 0 && denominator > 1; denominator /= 2) {
    if (side / denominator >= static_cast<JDIMENSION>(target_side)) {
      return denominator;
    }
  }
  return 1;
}

// Sets the output colour space and scale, and computes the output size.
bool choose_output(JpegState* state, bool grey, unsigned denominator) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_decompress_struct& info = state->info;
  const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four ? JCS_CMYK : (grey ? JCS_GRAYSCALE : JCS_RGB);
  info.scale_num = 1;
  info.scale_denom = denominator;
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

#ifdef LIBJPEG_TURBO_VERSION_NUMBER
#define BINADE_JPEG_PARTS

// Chroma is upsampled by interpolation between neighbours, and the library treats the edge of the
// decoded part as the edge of the picture. So it decodes a margin on every side whose pixels are
// not used.
constexpr int kColumnMargin = 8;

// Starts to decode the columns [*left, *left + *width) and stores the range that will be decoded.
bool start_columns(JpegState* state, JDIMENSION* left, JDIMENSION* width) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_decompress_struct& info = state->info;
  jpeg_start_decompress(&info);
  if (*left == 0 && *width == info.output_width) {
    return true;
  }
  jpeg_crop_scanline(&info, left, width);  // moves `left` to a block's first column
  return true;
}

// The first row that must be decoded for row `top`: one row of blocks above its own.
JDIMENSION first_decoded_row(const jpeg_decompress_struct& info, int top) {
  const int block = info.max_v_samp_factor * info.min_DCT_scaled_size;
  return static_cast<JDIMENSION>(std::max(top / block - 1, 0) * block);
}

void skip_rows(JpegState* state, JDIMENSION until) {
  constexpr JDIMENSION kAtOnce = 1024;  // rows between two checks of the limits
  jpeg_decompress_struct& info = state->info;
  while (info.output_scanline < until) {
    jpeg_skip_scanlines(&info, std::min(until - info.output_scanline, kAtOnce));
    on_progress(reinterpret_cast<j_common_ptr>(&info));
  }
}

// Decodes `height` rows from row `top` to `pixels` and reads all others. `spare` receives rows that
// are not wanted.
bool read_rows(JpegState* state, int top, int height, uint8_t* pixels, uint8_t* spare) {
  if (setjmp(state->jump) != 0) {
    return false;
  }
  jpeg_decompress_struct& info = state->info;
  const size_t stride = static_cast<size_t>(info.output_width) * info.output_components;
  skip_rows(state, first_decoded_row(info, top));
  const auto first = static_cast<JDIMENSION>(top), last = static_cast<JDIMENSION>(top + height);
  while (info.output_scanline < last) {
    const JDIMENSION y = info.output_scanline;
    JSAMPROW row = y < first ? spare : pixels + stride * (y - first);
    jpeg_read_scanlines(&info, &row, 1);
  }
  // Skipping the last row would end the reading before the end marker, so the last row is decoded.
  skip_rows(state, info.output_height - 1);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = spare;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}
#endif

class JpegReader {
 public:
  // Reads the header. The other constructor is done by then, so an error frees the memory.
  explicit JpegReader(const DecodeRequest& request) : JpegReader(request, Unread{}) {
    expect(read_jpeg_header(&state_, request_.bytes.data(), request_.bytes.size()));
    check_size(request_, height(), width());
  }
  ~JpegReader() { jpeg_destroy_decompress(&state_.info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int height() const { return static_cast<int>(state_.info.image_height); }
  int width() const { return static_cast<int>(state_.info.image_width); }

  // Returns the picture in the file's colours: 1 grey, 3 RGB, 4 CMYK.
  Image read() {
    choose(denominator_for(state_.info, request_.options.target_side));
    const jpeg_decompress_struct& info = state_.info;
    Image image = make_image(static_cast<int>(info.output_height),
                             static_cast<int>(info.output_width), info.out_color_components);
    expect(read_pixels(&state_, image.pixels.data()));
    return image;
  }

#ifdef BINADE_JPEG_PARTS
  // Decodes the rows of `box` and at least its columns from the picture reduced by `denominator`.
  // Returns the first column of `image`, whose memory is reused.
  int read_part(const Box& box, int denominator, Image& image, std::vector<uint8_t>& spare) {
    choose(static_cast<unsigned>(denominator));
    const jpeg_decompress_struct& info = state_.info;
    const int columns = static_cast<int>(info.output_width);
    auto left = static_cast<JDIMENSION>(std::max(box.left - kColumnMargin, 0));
    JDIMENSION count =
        static_cast<JDIMENSION>(std::min(box.left + box.width + kColumnMargin, columns)) - left;
    expect(start_columns(&state_, &left, &count));
    image.height = box.height;
    image.width = static_cast<int>(info.output_width);
    image.channels = info.out_color_components;
    const size_t row_bytes = static_cast<size_t>(image.width) * image.channels;
    image.pixels.resize(row_bytes * static_cast<size_t>(box.height));
    spare.resize(row_bytes);
    expect(read_rows(&state_, box.top, box.height, image.pixels.data(), spare.data()));
    return static_cast<int>(left);
  }
#endif

  // Adobe programs store CMYK inverted and write their own marker.
  bool inverted() const { return state_.info.saw_Adobe_marker != 0; }

 private:
  struct Unread {};
  JpegReader(const DecodeRequest& request, Unread) : request_(request) {
    state_.info.err = jpeg_std_error(&state_.errors);
    state_.errors.error_exit = on_decode_error;
    state_.errors.emit_message = on_message;
    state_.errors.output_message = on_output;
    state_.info.client_data = &state_;
    state_.progress.progress_monitor = on_progress;
    state_.request = &request;
  }
  void choose(unsigned denominator) {
    const bool grey = request_.channels(state_.info.num_components == 1 ? 1 : 3) == 1;
    expect(choose_output(&state_, grey, denominator));
  }
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

// Converts the colours of the file to the requested channels.
Image convert_colours(Image image, const DecodeRequest& request, bool inverted) {
  const int channels = request.channels(image.channels == 1 ? 1 : 3);
  if (image.channels == 4) {
    image = cmyk_to_rgb(image, inverted);
  }
  return convert_channels(std::move(image), channels);
}

}  // namespace

Image decode_jpeg(const DecodeRequest& request) {
  JpegReader reader(request);
  return convert_colours(reader.read(), request, reader.inverted());
}

#ifdef BINADE_JPEG_PARTS

namespace {

// The box of an upright picture in the coordinates of the stored picture of that size.
Box stored_box(const Box& box, int orientation, int height, int width) {
  const bool transposed = orientation >= 5;
  const bool mirror_row =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool mirror_column =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Box stored = transposed ? Box{box.left, box.top, box.width, box.height} : box;
  if (mirror_row) {
    stored.top = height - stored.top - stored.height;
  }
  if (mirror_column) {
    stored.left = width - stored.left - stored.width;
  }
  return stored;
}

// Buffers that each thread reuses.
struct PartBuffers {
  Image pixels;
  std::vector<uint8_t> spare;

  void release_if_large() {
    constexpr size_t kKept = size_t{64} << 20;
    if (pixels.pixels.capacity() > kKept) {
      pixels = {};
    }
  }
};

PartBuffers& part_buffers() {
  static thread_local PartBuffers buffers;
  return buffers;
}

Image crop_columns(const Image& image, int left, int width) {
  return crop_image(image, 0, left, image.height, width);
}

}  // namespace

bool can_decode_part(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8;
}

Image decode_part(std::span<const uint8_t> bytes, std::string_view path,
                  const DecodeOptions& options, ImageRequest& wanted) {
  const DecodeRequest request{bytes, path, options};
  check_request(request);
  JpegReader reader(request);
  const int orientation = options.apply_orientation ? orientation_of(bytes) : 1;
  const bool transposed = orientation >= 5;
  const Geometry& geometry = wanted.plan(transposed ? reader.width() : reader.height(),
                                         transposed ? reader.height() : reader.width());
  // A mirrored picture in reduced size would begin with the incomplete pixel of the other edge.
  const int denominator = orientation == 1 ? geometry.denominator(wanted.reducing_gap()) : 1;
  const Box box = geometry.needed(denominator);
  const Box stored = stored_box(box, orientation, reader.height(), reader.width());
  PartBuffers& buffers = part_buffers();
  const int left = reader.read_part(stored, denominator, buffers.pixels, buffers.spare);
  PixelView view = view_of(buffers.pixels);
  Image other;
  view.left = left;
  const int channels = request.channels(view.channels == 1 ? 1 : 3);
  if (orientation != 1 || view.channels != channels || view.channels == 4) {
    other = convert_colours(crop_columns(buffers.pixels, stored.left - left, stored.width), request,
                            reader.inverted());
    other = apply_orientation(std::move(other), orientation);
    view = view_of(other);
    view.left = box.left;
  }
  view.top = box.top;
  view.denominator = denominator;
  Image out;
  geometry.apply(view, out);
  buffers.release_if_large();
  return out;
}

#else

bool can_decode_part(std::span<const uint8_t>) { return false; }

Image decode_part(std::span<const uint8_t> bytes, std::string_view path,
                  const DecodeOptions& options, ImageRequest& wanted) {
  return wanted.apply(decode_image(bytes, path, options));
}

#endif

}  // namespace internal

#endif

}  // namespace binade::data
