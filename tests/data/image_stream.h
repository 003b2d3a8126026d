// Collects the images of a loader's epoch in plain vectors for comparisons.
#pragma once
#include <binade/data/loader.h>

#include <vector>

namespace binade::data::test {

// Everything that a stream of batches contains.
struct Stream {
  std::vector<float> pixels;
  std::vector<int64_t> labels, indices, sizes;
  bool operator==(const Stream&) const = default;
};

inline Stream read_stream(Loader& loader, int64_t epoch, int64_t first_batch = 0) {
  Stream stream;
  for (const Batch& batch : loader.epoch(epoch, first_batch)) {
    const float* pixels = batch.images.data<float>();
    const int64_t* labels = batch.labels.data<int64_t>();
    stream.pixels.insert(stream.pixels.end(), pixels, pixels + batch.images.numel());
    stream.labels.insert(stream.labels.end(), labels, labels + batch.size);
    stream.indices.insert(stream.indices.end(), batch.indices.begin(), batch.indices.end());
    stream.sizes.push_back(batch.size);
  }
  return stream;
}

}  // namespace binade::data::test
