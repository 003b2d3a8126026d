// A sample as the bytes of a store, and back. Layout: u32 parts, u32 bytes of the origin, the
// origin; then each part: a PartHeader, `rank` sizes of 8 bytes, the name, the data.
#include <binade/data/fields_internal.h>
#include <binade/data/store/store_format_internal.h>
#include <binade/kernels/base/error.h>

#include <bit>
#include <cstring>
#include <limits>

namespace binade::data {
namespace {

static_assert(std::endian::native == std::endian::little, "stores are little-endian");

enum class Kind : uint8_t { image, encoded, values, field, mask, boxes };

struct PartHeader {
  Kind kind = Kind::image;
  DType dtype = DType::u8;
  uint8_t width = 0;  // bytes per stored integer, 0: as the dtype
  uint8_t rank = 0;
  uint32_t name_bytes = 0;
  uint64_t bytes = 0;  // of the data
};
static_assert(sizeof(PartHeader) == 16);

constexpr uint32_t kMaxParts = 4096, kMaxName = 1024, kMaxOrigin = 65536;

// Writes --------------------------------------------------------------------------------------

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct StoredPart {
  PartHeader header;
  Dims sizes;
  std::string_view name;
  std::span<const std::byte> data;
};

void append(std::string& out, const StoredPart& part) {
  PartHeader header = part.header;
  header.rank = static_cast<uint8_t>(part.sizes.size());
  header.name_bytes = static_cast<uint32_t>(part.name.size());
  header.bytes = part.data.size();
  check(part.name.size() <= kMaxName, "store: got a field whose name has ", part.name.size(),
        " bytes, expected at most ", kMaxName);
  check(out.size() + part.data.size() <= kMaxSampleBytes,
        "store: got a sample of 4 GiB or more, expected less; store parts of it");
  append<PartHeader>(out, header);
  for (const int64_t size : part.sizes) {
    append(out, size);
  }
  out += part.name;
  out.append(reinterpret_cast<const char*>(part.data.data()), part.data.size());
}

// The smallest of 1, 2 and 4 bytes that hold all values without sign; 0 if none is smaller than T.
template <class T>
uint8_t width_for(const T* values, int64_t count) {
  uint64_t all = 0;
  for (int64_t i = 0; i < count; ++i) {
    all |= static_cast<uint64_t>(static_cast<int64_t>(values[i]));
  }
  const int bits = std::bit_width(all);
  const uint8_t width = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
  return width < sizeof(T) ? width : 0;
}

template <class T>
std::string narrowed(const T* values, int64_t count, uint8_t width) {
  std::string out;
  out.reserve(static_cast<size_t>(count) * width);
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<uint64_t>(static_cast<int64_t>(values[i]));
    out.append(reinterpret_cast<const char*>(&value), width);
  }
  return out;
}

void append_field(std::string& out, const std::string& name, const Tensor& tensor) {
  const Tensor values = plain(tensor);
  const std::span<const std::byte> all(
      values.view().data, static_cast<size_t>(values.numel()) * size_of(values.dtype()));
  StoredPart part{{.kind = Kind::field, .dtype = values.dtype()}, values.sizes(), name, all};
  std::string small;
  const auto narrow = [&]<class T>(const T* data) {
    part.header.width = width_for(data, values.numel());
    if (part.header.width != 0) {
      small = narrowed(data, values.numel(), part.header.width);
      part.data = std::as_bytes(std::span(small));
    }
  };
  if (values.dtype() == DType::i64) {
    narrow(values.data<const int64_t>());
  } else if (values.dtype() == DType::i32) {
    narrow(values.data<const int32_t>());
  }
  append(out, part);
}

void append_image(std::string& out, Kind kind, const std::string& name, const Image& image) {
  append(out, StoredPart{{.kind = kind},
                         {image.height, image.width, image.channels},
                         name,
                         std::as_bytes(std::span(image.pixels))});
}

// Boxes as u8: this header, corners of 4 f32, labels of i64.
struct BoxesHeader {
  int32_t height = 0, width = 0;
  uint32_t corners = 0, labels = 0;
};

void append_boxes(std::string& out, const std::string& name, const Boxes& boxes) {
  check(boxes.labels.empty() || boxes.labels.size() == boxes.corners.size(), "store: got ",
        boxes.labels.size(), " labels for the ", boxes.corners.size(), " boxes '", name, "'");
  std::string bytes;
  append(bytes, BoxesHeader{boxes.height, boxes.width, static_cast<uint32_t>(boxes.corners.size()),
                            static_cast<uint32_t>(boxes.labels.size())});
  for (const auto& corners : boxes.corners) {
    append(bytes, corners);
  }
  for (const int64_t label : boxes.labels) {
    append(bytes, label);
  }
  append(out,
         StoredPart{
             {.kind = Kind::boxes}, {std::ssize(bytes)}, name, std::as_bytes(std::span(bytes))});
}

// Reads ---------------------------------------------------------------------------------------

// Bytes from front to back; reading beyond the end is an error.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> take(uint64_t count) {
    check(count <= rest_.size(), "the sample ends within one of its parts");
    const auto part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view take_text(uint64_t count) {
    const auto bytes = take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

// Throws unless the data has as many bytes as the sizes say.
void check_sizes(const StoredPart& part) {
  const PartHeader& h = part.header;
  const bool integer = h.dtype == DType::i64 || h.dtype == DType::i32;
  check(h.width == 0 || (integer && h.kind == Kind::field && std::has_single_bit(h.width) &&
                         h.width < size_of(h.dtype)),
        "a part has integers of ", int{h.width}, " bytes, expected 1, 2 or 4");
  uint64_t bytes = h.width != 0 ? h.width : size_of(h.dtype);
  for (const int64_t size : part.sizes) {
    check(size >= 0, "a part has the size ", size);
    const auto factor = static_cast<uint64_t>(size);
    check(factor == 0 || bytes <= kMaxSampleBytes / factor, "a part has more than 4 GiB");
    bytes *= factor;
  }
  check(h.kind == Kind::encoded || bytes == h.bytes, "a part has ", h.bytes,
        " bytes, its sizes say ", bytes);
  const bool picture = h.kind == Kind::image || h.kind == Kind::mask;
  constexpr int64_t kMaxSide = std::numeric_limits<int>::max();
  check(!picture || (part.sizes.size() == 3 && h.dtype == DType::u8 && part.sizes[0] >= 1 &&
                     part.sizes[0] <= kMaxSide && part.sizes[1] >= 1 && part.sizes[1] <= kMaxSide &&
                     part.sizes[2] >= 1 && part.sizes[2] <= 4),
        "a picture has bad sizes, expected [height, width, 1 to 4]");
  check(h.kind != Kind::boxes || (part.sizes.size() == 1 && h.dtype == DType::u8),
        "boxes have bad sizes, expected [bytes] u8");
  check(h.kind != Kind::values || (part.sizes.size() == 1 && h.dtype == DType::f32),
        "values have bad sizes, expected [n] f32");
  if (h.dtype == DType::boolean) {
    for (const std::byte value : part.data) {
      check(value <= std::byte{1}, "a bool tensor has a byte that is neither 0 nor 1");
    }
  }
}

StoredPart take_part(Cursor& cursor) {
  // An enumerator is made only of a value that it has.
  const auto bytes = cursor.take(sizeof(PartHeader));
  check(std::to_integer<int>(bytes[0]) <= static_cast<int>(Kind::boxes) &&
            std::to_integer<int>(bytes[1]) < kDTypeCount,
        "the sample has a part of unknown kind");
  StoredPart part;
  std::memcpy(&part.header, bytes.data(), sizeof(PartHeader));
  check(part.header.rank <= kMaxDims && part.header.name_bytes <= kMaxName, "a part has ",
        int{part.header.rank}, " dimensions and a name of ", part.header.name_bytes, " bytes");
  for (int d = 0; d < part.header.rank; ++d) {
    part.sizes.push_back(cursor.take<int64_t>());
  }
  part.name = cursor.take_text(part.header.name_bytes);
  part.data = cursor.take(part.header.bytes);
  check_sizes(part);
  return part;
}

template <class T>
void widen(std::span<const std::byte> data, uint8_t width, T* to) {
  const size_t count = data.size() / width;
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, data.data() + i * width, width);
    to[i] = static_cast<T>(value);
  }
}

void copy_bytes(void* to, std::span<const std::byte> from) {
  if (!from.empty()) {
    std::memcpy(to, from.data(), from.size());
  }
}

Tensor field_of(const StoredPart& part) {
  Tensor field = empty(part.sizes, part.header.dtype);
  if (part.header.width == 0) {
    copy_bytes(field.view().data, part.data);
  } else if (part.header.dtype == DType::i64) {
    widen(part.data, part.header.width, field.data<int64_t>());
  } else {
    widen(part.data, part.header.width, field.data<int32_t>());
  }
  return field;
}

Boxes boxes_of(const StoredPart& part) {
  Cursor cursor(part.data);
  const auto header = cursor.take<BoxesHeader>();
  const uint64_t bytes =
      header.corners * uint64_t{4 * sizeof(float)} + header.labels * uint64_t{sizeof(int64_t)};
  check(bytes == cursor.rest().size() && (header.labels == 0 || header.labels == header.corners) &&
            header.height >= 0 && header.width >= 0,
        "the boxes '", part.name, "' have ", header.corners, " corners and ", header.labels,
        " labels in ", part.data.size(), " bytes");
  Boxes boxes{header.height, header.width};
  boxes.corners.resize(header.corners);
  boxes.labels.resize(header.labels);
  copy_bytes(boxes.corners.data(), cursor.take(boxes.corners.size() * 4 * sizeof(float)));
  copy_bytes(boxes.labels.data(), cursor.rest());
  return boxes;
}

SampleView::Picture picture_of(const StoredPart& part) {
  return {static_cast<int>(part.sizes[0]), static_cast<int>(part.sizes[1]),
          static_cast<int>(part.sizes[2]), part.data};
}

}  // namespace

std::string encode_sample(const Sample& sample, std::string_view origin,
                          std::span<const uint8_t> encoded) {
  const bool has_image = !encoded.empty() || !sample.image.pixels.empty();
  const size_t parts = (has_image ? 1u : 0u) + (sample.values.empty() ? 0u : 1u) +
                       sample.fields.size() + sample.masks.size() + sample.boxes.size();
  check(parts <= kMaxParts, "store: got a sample of ", parts,
        " fields, masks and boxes, expected at most ", kMaxParts);
  origin = origin.substr(0, kMaxOrigin);
  std::string out;
  append(out, static_cast<uint32_t>(parts));
  append(out, static_cast<uint32_t>(origin.size()));
  out += origin;
  if (!encoded.empty()) {
    append(out, StoredPart{{.kind = Kind::encoded}, {}, {}, std::as_bytes(encoded)});
  } else if (has_image) {
    append_image(out, Kind::image, {}, sample.image);
  }
  if (!sample.values.empty()) {
    append(out, StoredPart{{.kind = Kind::values, .dtype = DType::f32},
                           {std::ssize(sample.values)},
                           {},
                           std::as_bytes(std::span(sample.values))});
  }
  for (const auto& [name, tensor] : sample.fields) {
    append_field(out, name, tensor);
  }
  for (const auto& [name, mask] : sample.masks) {
    append_image(out, Kind::mask, name, mask);
  }
  for (const auto& [name, boxes] : sample.boxes) {
    append_boxes(out, name, boxes);
  }
  return out;
}

SampleView parse_sample(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  SampleView view;
  const auto parts = cursor.take<uint32_t>();
  check(parts <= kMaxParts, "the sample has ", parts, " parts, expected at most ", kMaxParts);
  const auto origin_bytes = cursor.take<uint32_t>();
  check(origin_bytes <= kMaxOrigin, "the sample has an origin of ", origin_bytes, " bytes");
  view.origin = cursor.take_text(origin_bytes);
  for (uint32_t i = 0; i < parts; ++i) {
    const std::span<const std::byte> here = cursor.rest();
    const StoredPart part = take_part(cursor);
    const bool is_picture = part.header.kind == Kind::image || part.header.kind == Kind::encoded;
    check(!is_picture || i == 0, "the sample has an image behind other parts");
    if (part.header.kind == Kind::image) {
      view.image = picture_of(part);
    } else if (part.header.kind == Kind::encoded) {
      view.encoded = part.data;
    } else if (view.rest.empty()) {
      view.rest = here;
    }
  }
  check(cursor.rest().empty(), "the sample has ", cursor.rest().size(), " bytes after its parts");
  return view;
}

void read_rest(std::span<const std::byte> rest, Sample& sample) {
  sample.values.clear();
  sample.fields.clear();
  sample.masks.clear();
  sample.boxes.clear();
  for (Cursor cursor(rest); !cursor.rest().empty();) {
    const StoredPart part = take_part(cursor);
    if (part.header.kind == Kind::values) {
      sample.values.resize(part.data.size() / sizeof(float));
      copy_bytes(sample.values.data(), part.data);
    } else if (part.header.kind == Kind::field) {
      check(!part.name.empty() && !sample.has(part.name), "the sample has two fields '", part.name,
            "'");
      sample.fields.emplace_back(std::string(part.name), field_of(part));
    } else if (part.header.kind == Kind::boxes) {
      sample.boxes.emplace_back(std::string(part.name), boxes_of(part));
    } else {
      const SampleView::Picture picture = picture_of(part);
      const auto* pixels = reinterpret_cast<const uint8_t*>(picture.pixels.data());
      sample.masks.emplace_back(std::string(part.name),
                                Image{picture.height,
                                      picture.width,
                                      picture.channels,
                                      {pixels, pixels + picture.pixels.size()}});
    }
  }
}

}  // namespace binade::data
