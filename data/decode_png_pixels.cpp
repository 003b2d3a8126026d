// The pixels of a PNG: zlib inflates one row at a time, its filter is undone, and its samples
// become 8-bit channels. This needs memory for the picture and two rows. Decoding is strict: the
// compressed stream must hold exactly the rows that the header declares, with a right checksum.
#include <binade/data/decode_png_internal.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace binade::data::internal {
namespace {

// The zlib stream in the IDAT chunks.
class Inflater {
 public:
  // `expected` is about the number of bytes that will be read.
  Inflater(const DecodeRequest& request, const PngChunks& chunks, size_t expected)
      : request_(request), parts_(chunks.data), block_(std::min(expected + 512, size_t(1) << 16)) {
    if (::inflateInit(&stream_) != Z_OK) {
      throw OutOfMemory(text(request.path, ": zlib cannot start"));
    }
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void read(std::span<uint8_t> out) {
    while (!out.empty()) {
      if (unread_.empty()) {
        unread_ = std::span(block_).first(unpack(block_));
      }
      if (unread_.empty()) {
        request_.reject("cannot decode: corrupt PNG: less pixel data than the header says");
      }
      const size_t count = std::min(out.size(), unread_.size());
      std::copy_n(unread_.begin(), count, out.begin());
      unread_ = unread_.subspan(count);
      out = out.subspan(count);
    }
  }
  // Throws unless the stream ends here; zlib checks its checksum.
  void expect_end() {
    if (!unread_.empty() || unpack(block_) != 0) {
      request_.reject("cannot decode: corrupt PNG: more pixel data than the header says");
    }
  }

 private:
  // Fills `out`; returns fewer bytes only at the end of the stream.
  size_t unpack(std::span<uint8_t> out) {
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0 && next_ < parts_.size()) {
        stream_.next_in = const_cast<Bytef*>(parts_[next_].data());
        stream_.avail_in = static_cast<uInt>(parts_[next_++].size());
        continue;
      }
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      ended_ = status == Z_STREAM_END;
      if (status == Z_MEM_ERROR) {
        throw OutOfMemory(text(request_.path, ": zlib has no memory"));
      }
      if (status == Z_BUF_ERROR) {  // no input is left
        request_.reject("cannot decode: corrupt PNG: the pixel data is cut off");
      }
      if (!ended_ && status != Z_OK) {
        request_.reject("cannot decode: corrupt PNG: ",
                        stream_.msg != nullptr ? stream_.msg : "wrong pixel data");
      }
    }
    return out.size() - stream_.avail_out;
  }

  const DecodeRequest& request_;
  const std::vector<std::span<const uint8_t>>& parts_;
  std::vector<uint8_t> block_;  // inflated at a time, because zlib is slow at the end of its output
  std::span<const uint8_t> unread_;
  size_t next_ = 0;
  bool ended_ = false;
  z_stream stream_{};
};

// Undoes the filter of a row in place. `prior` is the row above, zeros at the top; `step` is the
// number of bytes per pixel, at least 1.
void unfilter(const DecodeRequest& request, int filter, std::span<uint8_t> row,
              const uint8_t* prior, size_t step) {
  uint8_t* x = row.data();
  const size_t size = row.size(), first = std::min(step, size);
  const auto add = [&](size_t i, int value) { x[i] = static_cast<uint8_t>(x[i] + value); };
  switch (filter) {
    case 0: return;
    case 1:
      for (size_t i = first; i < size; ++i) {
        add(i, x[i - step]);
      }
      return;
    case 2:
      for (size_t i = 0; i < size; ++i) {
        add(i, prior[i]);
      }
      return;
    case 3:
      for (size_t i = 0; i < first; ++i) {
        add(i, prior[i] / 2);
      }
      for (size_t i = first; i < size; ++i) {
        add(i, (x[i - step] + prior[i]) / 2);
      }
      return;
    case 4:
      for (size_t i = 0; i < first; ++i) {
        add(i, prior[i]);
      }
      for (size_t i = first; i < size; ++i) {
        add(i, paeth(x[i - step], prior[i], prior[i - step]));
      }
      return;
    default: request.reject("cannot decode: corrupt PNG: filter ", filter, ", expected 0 to 4");
  }
}

// A sample of a row at the depth of the file.
uint32_t sample_at(const uint8_t* row, size_t index, int depth) {
  if (depth == 16) {
    return read_u16_be(row + 2 * index);
  }
  const size_t bit = index * static_cast<size_t>(depth);
  return row[bit / 8] >> (8 - depth - static_cast<int>(bit % 8)) & ((1u << depth) - 1);
}

class PngReader {
 public:
  PngReader(const DecodeRequest& request, const PngHeader& header, const PngChunks& chunks)
      : request_(request),
        header_(header),
        chunks_(chunks),
        samples_(png_samples(header.color_type)),
        inflater_(request, chunks, row_bytes(header.width) * static_cast<size_t>(header.height)),
        image_(make_image(static_cast<int>(header.height), static_cast<int>(header.width),
                          request.channels((header.color_type & kPngColor) != 0 ? 3 : 1))) {
    read_palette();
    if (!chunks.transparency.empty() && chunks.transparency.size() >= 2 * samples_) {
      for (size_t c = 0; c < samples_; ++c) {
        transparent_[c] = read_u16_be(&chunks.transparency[2 * c]);
      }
      has_transparent_ = header.color_type == 0 || header.color_type == kPngColor;
    }
  }

  Image read() {
    struct Pass {
      int64_t x, y, dx, dy;  // first pixel and steps
    };
    constexpr Pass kAll[] = {{0, 0, 1, 1}};
    constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                               {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    for (const Pass& pass : header_.interlaced ? std::span<const Pass>(kAdam7) : kAll) {
      const int64_t width = (header_.width - pass.x + pass.dx - 1) / pass.dx;
      if (width > 0) {
        start_pass(width);
        for (int64_t y = pass.y; y < header_.height; y += pass.dy) {
          read_row();
          put_row(width, image_.row(static_cast<int>(y)) + pass.x * image_.channels, pass.dx);
        }
      }
    }
    inflater_.expect_end();
    return std::move(image_);
  }

 private:
  void read_palette() {
    if (header_.color_type != kPngPalette) {
      return;
    }
    colors_ = chunks_.palette.size() / 3;
    if (chunks_.palette.size() % 3 != 0 || colors_ < 1 || colors_ > palette_.size()) {
      request_.reject("corrupt PNG: a palette of ", chunks_.palette.size(),
                      " bytes, expected three for each of 1 to 256 colours");
    }
    for (size_t i = 0; i < colors_; ++i) {
      const uint8_t* color = &chunks_.palette[3 * i];
      palette_[i] = {color[0], color[1], color[2],
                     i < chunks_.transparency.size() ? chunks_.transparency[i] : uint8_t(255)};
    }
  }

  // The bytes of a row: one for the filter, then the pixels.
  size_t row_bytes(int64_t width) const {
    const size_t bits = samples_ * static_cast<size_t>(header_.bit_depth);
    return 1 + (static_cast<size_t>(width) * bits + 7) / 8;
  }

  void start_pass(int64_t width) {
    step_ = std::max<size_t>(1, samples_ * static_cast<size_t>(header_.bit_depth) / 8);
    row_.assign(row_bytes(width), 0);
    prior_.assign(row_bytes(width), 0);
    narrow_.resize(static_cast<size_t>(width) * samples_);
  }

  void read_row() {
    request_.check_time();
    row_.swap(prior_);
    inflater_.read(row_);
    unfilter(request_, row_[0], std::span(row_).subspan(1), &prior_[1], step_);
  }

  // The samples of the row as bytes: scaled to 0..255, except palette indices.
  const uint8_t* narrow_row(size_t width) {
    const int depth = header_.bit_depth;
    if (depth == 8) {
      return &row_[1];
    }
    const uint32_t scale =
        header_.color_type == kPngPalette || depth == 16 ? 1 : 255 / ((1u << depth) - 1);
    for (size_t i = 0; i < width * samples_; ++i) {
      narrow_[i] = depth == 16 ? row_[1 + 2 * i]
                               : static_cast<uint8_t>(sample_at(&row_[1], i, depth) * scale);
    }
    return narrow_.data();
  }

  template <class Get>
  void put(size_t width, uint8_t* to, size_t step, Get&& get) const {
    for (size_t x = 0; x < width; ++x, to += step) {
      store_pixel(to, image_.channels, get(x));
    }
  }

  // Writes the row's pixels to `to`, `dx` pixels apart.
  void put_row(int64_t pixels, uint8_t* to, int64_t dx) {
    const auto width = static_cast<size_t>(pixels);
    const size_t step = static_cast<size_t>(dx * image_.channels);
    const uint8_t* x = narrow_row(width);
    const bool same = static_cast<size_t>(image_.channels) == samples_;
    if (header_.color_type == kPngPalette) {
      check_indices({x, width});
      put(width, to, step, [&](size_t i) { return palette_[x[i]]; });
    } else if (same && dx == 1 && samples_ != 2) {
      std::memcpy(to, x, width * samples_);
    } else if (samples_ <= 2) {
      const auto alpha = [&](size_t i) { return samples_ == 2 ? x[2 * i + 1] : uint8_t(255); };
      put(width, to, step, [&](size_t i) {
        const uint8_t grey = x[i * samples_];
        return Pixel{grey, grey, grey, alpha(i)};
      });
    } else {
      put(width, to, step, [&](size_t i) {
        const uint8_t* p = x + i * samples_;
        return Pixel{p[0], p[1], p[2], samples_ == 4 ? p[3] : uint8_t(255)};
      });
    }
    if (has_transparent_ && image_.channels == 4) {
      clear_transparent(width, to, step);
    }
  }

  void check_indices(std::span<const uint8_t> indices) const {
    for (const uint8_t index : indices) {
      if (index >= colors_) {
        request_.reject("corrupt PNG: a pixel has colour ", int{index}, ", the palette has ",
                        static_cast<uint64_t>(colors_), " colours");
      }
    }
  }

  // Sets alpha to 0 for pixels that have exactly the colour declared transparent.
  void clear_transparent(size_t width, uint8_t* to, size_t step) const {
    for (size_t x = 0; x < width; ++x, to += step) {
      bool all = true;
      for (size_t c = 0; c < samples_; ++c) {
        all = all && sample_at(&row_[1], x * samples_ + c, header_.bit_depth) == transparent_[c];
      }
      to[3] = all ? 0 : to[3];
    }
  }

  const DecodeRequest& request_;
  const PngHeader& header_;
  const PngChunks& chunks_;
  const size_t samples_;
  Inflater inflater_;
  Image image_;
  std::array<Pixel, 256> palette_{};
  size_t colors_ = 0;
  std::array<uint32_t, 4> transparent_{};  // the transparent colour at the depth of the file
  bool has_transparent_ = false;
  size_t step_ = 1;
  std::vector<uint8_t> row_, prior_, narrow_;
};

}  // namespace

size_t png_samples(int color_type) {
  constexpr std::array<size_t, 7> kSamples = {1, 0, 3, 1, 2, 0, 4};
  return color_type >= 0 && color_type < 7 ? kSamples[static_cast<size_t>(color_type)] : 0;
}

Image read_png_pixels(const DecodeRequest& request, const PngHeader& header,
                      const PngChunks& chunks) {
  return PngReader(request, header, chunks).read();
}

}  // namespace binade::data::internal
