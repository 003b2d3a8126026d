// Collects all values of an epoch of rows of numbers.
#pragma once
#include <binade/data/loader.h>

#include <vector>

namespace binade::data::test {

struct RowStream {
  std::vector<float> values;
  std::vector<int64_t> labels, indices, sizes;
  bool operator==(const RowStream&) const = default;
};

inline void append(RowStream& stream, const Batch& batch) {
  const float* values = batch.images.data<float>();
  const int64_t* labels = batch.labels.data<int64_t>();
  stream.values.insert(stream.values.end(), values, values + batch.images.numel());
  stream.labels.insert(stream.labels.end(), labels, labels + batch.size);
  stream.indices.insert(stream.indices.end(), batch.indices.begin(), batch.indices.end());
  stream.sizes.push_back(batch.size);
}

inline RowStream read_rows(Loader& loader, int64_t epoch, int64_t first_batch = 0) {
  RowStream stream;
  for (const Batch& batch : loader.epoch(epoch, first_batch)) {
    append(stream, batch);
  }
  return stream;
}

}  // namespace binade::data::test
