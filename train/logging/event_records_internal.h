// The records of TensorBoard's event files, byte by byte: a tensorflow.Event in the protobuf wire
// format (event.proto, summary.proto, tensor.proto), framed as TFRecord: the length (u64), its
// masked CRC-32C, the bytes, their masked CRC-32C, all little endian. Internal to train.
#pragma once
#include <binade/data/sample.h>
#include <binade/train/metrics/named_values.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace binade::train {

struct EventTime {
  double seconds;  // since 1970, the wall clock
  int64_t step;
};

struct EventHistogram {
  double min, max, count, sum, sum_of_squares;
  // Bucket i has the values from limit i - 1 (or the least) to below limit i.
  std::vector<double> limits, counts;
};

// The functions below return whole records.
std::string version_record(double seconds);  // the first one of a file
// Says that events of this and later steps in earlier files are void.
std::string start_record(const EventTime& time);
std::string scalars_record(const EventTime& time, const NamedValues& values);
std::string histogram_record(const EventTime& time, std::string_view tag, const EventHistogram& h);
std::string image_record(const EventTime& time, std::string_view tag, const data::Image& image);
std::string text_record(const EventTime& time, std::string_view tag, std::string_view text);

// The finite values in TensorFlow's default buckets: limits 1e-12 * 1.1^k of both signs, and 0.
// REQUIRES: there is one.
EventHistogram histogram_of(const std::vector<double>& finite);

}  // namespace binade::train
