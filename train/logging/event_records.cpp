#include <binade/core/io/crc32c.h>
#include <binade/data/encode.h>
#include <binade/train/logging/event_records_internal.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <span>

namespace binade::train {
namespace {

template <class T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(value >> 8 * i & 0xff);
  }
}

// A message under construction: fields by number, in the wire format.
class Message {
 public:
  Message& integer(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    put_little_endian(bytes_, std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& real32(int field, float value) {
    key(field, 5);
    put_little_endian(bytes_, std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& packed(int field, const std::vector<double>& values) {
    std::string all;
    for (const double value : values) {
      put_little_endian(all, std::bit_cast<uint64_t>(value));
    }
    return text(field, all);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      bytes_ += static_cast<char>(value | 0x80);
    }
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// A CRC of data that contains CRCs is weak, so TFRecord stores another number.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return std::rotr(crc, 15) + 0xa282ead8U;
}

std::string framed(const Message& event) {
  std::string record;
  put_little_endian(record, static_cast<uint64_t>(event.bytes().size()));
  put_little_endian(record, masked_crc(record));
  record += event.bytes();
  put_little_endian(record, masked_crc(event.bytes()));
  return record;
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
Message event_at(const EventTime& time) {
  return Message().real(1, time.seconds).integer(2, time.step);
}

// Summary: value = 1.
std::string summary_record(const EventTime& time, const std::vector<Message>& values) {
  Message summary;
  for (const Message& value : values) {
    summary.message(1, value);
  }
  return framed(event_at(time).message(5, summary));
}

// Summary.Value: tag = 1, simple_value = 2, image = 4, histo = 5, tensor = 8, metadata = 9.
Message value_of(std::string_view tag) { return Message().text(1, tag); }

}  // namespace

std::string version_record(double seconds) {
  return framed(Message().real(1, seconds).text(3, "brain.Event:2"));
}

std::string start_record(const EventTime& time) {
  return framed(event_at(time).message(7, Message().integer(1, 1)));  // status = START
}

std::string scalars_record(const EventTime& time, const NamedValues& values) {
  std::vector<Message> all;
  for (const auto& [name, value] : values) {
    all.push_back(value_of(name).real32(2, static_cast<float>(value)));
  }
  return summary_record(time, all);
}

// HistogramProto: min = 1, max, num, sum, sum_squares, bucket_limit = 6, bucket = 7.
std::string histogram_record(const EventTime& time, std::string_view tag, const EventHistogram& h) {
  Message histogram;
  histogram.real(1, h.min).real(2, h.max).real(3, h.count).real(4, h.sum);
  histogram.real(5, h.sum_of_squares).packed(6, h.limits).packed(7, h.counts);
  return summary_record(time, {value_of(tag).message(5, histogram)});
}

// Summary.Image: height = 1, width = 2, colorspace = 3 (1 grey, 3 RGB), encoded_image_string = 4.
std::string image_record(const EventTime& time, std::string_view tag, const data::Image& image) {
  const std::vector<uint8_t> png = data::encode_png(image);
  Message encoded;
  encoded.integer(1, image.height).integer(2, image.width).integer(3, image.channels);
  encoded.text(4, std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
  return summary_record(time, {value_of(tag).message(4, encoded)});
}

// TensorProto: dtype = 1 (7 is string), tensor_shape = 2, string_val = 8. TensorShapeProto: dim = 2
// with size = 1. SummaryMetadata: plugin_data = 1 with plugin_name = 1.
std::string text_record(const EventTime& time, std::string_view tag, std::string_view text) {
  const Message shape = Message().message(2, Message().integer(1, 1));
  const Message tensor = Message().integer(1, 7).message(2, shape).text(8, text);
  const Message metadata = Message().message(1, Message().text(1, "text"));
  return summary_record(time, {value_of(tag).message(8, tensor).message(9, metadata)});
}

EventHistogram histogram_of(const std::vector<double>& finite) {
  static const std::vector<double> kLimits = [] {
    constexpr double kLeast = 1e-12, kMost = 1e20, kStep = 1.1;
    std::vector<double> limits = {0, std::numeric_limits<double>::max()};
    for (double limit = kLeast; limit < kMost; limit *= kStep) {
      limits.insert(limits.end(), {limit, -limit});
    }
    std::sort(limits.begin(), limits.end());
    return limits;
  }();
  EventHistogram h{.min = finite[0],
                   .max = finite[0],
                   .count = static_cast<double>(finite.size()),
                   .sum = 0,
                   .sum_of_squares = 0,
                   .limits = {},
                   .counts = {}};
  std::vector<double> counts(kLimits.size());
  for (const double x : finite) {
    h.min = std::min(h.min, x);
    h.max = std::max(h.max, x);
    h.sum += x;
    h.sum_of_squares += x * x;
    const auto above = std::upper_bound(kLimits.begin(), kLimits.end() - 1, x);
    ++counts[static_cast<size_t>(above - kLimits.begin())];
  }
  // Drops empty buckets at both ends, except the one before the first, whose limit is its start.
  const auto filled = [](double count) { return count > 0; };
  auto first = std::find_if(counts.begin(), counts.end(), filled) - counts.begin();
  const auto last = std::find_if(counts.rbegin(), counts.rend(), filled).base() - counts.begin();
  first -= first > 0 ? 1 : 0;
  h.limits.assign(kLimits.begin() + first, kLimits.begin() + last);
  h.counts.assign(counts.begin() + first, counts.begin() + last);
  return h;
}

}  // namespace binade::train
