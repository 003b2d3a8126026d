// Batch: the named tensors that a Loader delivers.
//
//   for (const data::Batch& batch : loader) {
//     Tensor loss = cross_entropy(model(batch["tokens"]), batch["targets"]);
//   }
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/core/tensor/tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

// `images` and `labels` are short names for the fields "images" and "labels"; undefined if the
// samples have no such field. All fields are on one device.
struct Batch {
  // Pictures: [N, C, H, W] f32, channels-last strides, unless LoaderOptions say otherwise; rows of
  // numbers (Sample::values): [N, values] f32; or the samples' own field "images".
  Tensor images = {};
  Tensor labels = {};  // [N] i64, or the samples' own field "labels"
  int64_t first = 0;   // position of the first sample in the epoch
  int64_t size = 0;    // N
  // The last `repeated` samples are in another shard, too (UnevenShards::pad): an evaluation leaves
  // them out.
  int64_t repeated = 0;
  std::vector<int64_t> indices = {};  // [N] dataset index (or row) of each sample
  NamedTensors fields = {};           // all other fields; use [] to read them
  int64_t epoch = 0;

  // The field of that name; throws Error that lists the names there are.
  const Tensor& operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  // "images" and "labels" if there are such fields, then the others in their order.
  std::vector<std::string> names() const;
  // Adds a field or replaces it. An undefined tensor removes it.
  void set(std::string_view name, Tensor value);
  // A copy with all fields on a device.
  Batch to(Device device) const;
};

}  // namespace binade::data
