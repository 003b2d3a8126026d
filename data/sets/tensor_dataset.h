// TensorDataset: tensors in memory, one sample per row.
//
//   data::TensorDataset set({{"x", X}, {"y", Y}});     // X [n, 8] f32, Y [n] i64
//   data::Loader loader(set, {.batch = 32});           // batch["x"] [32, 8], batch["y"] [32]
#pragma once
#include <binade/data/dataset.h>

namespace binade::data {

class TensorDataset : public Dataset {
 public:
  // Tensors of any dtype and layout whose first sizes are equal. Tensors on a device are copied to
  // the CPU; others are shared, so a later change of them changes the dataset.
  explicit TensorDataset(NamedTensors fields);

  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override;
  int channels() const override { return 0; }
  uint64_t id(int64_t index) const override;  // of the row's bytes
  // The row of "labels", if that is a field [n] of integers.
  std::optional<int64_t> label(int64_t index) const override;
  std::optional<int64_t> length(int64_t index, std::string_view field) const override;
  bool in_memory() const override { return true; }
  const NamedTensors& fields() const { return fields_; }

 private:
  NamedTensors fields_;  // row-major
  int64_t size_ = 0;
};

}  // namespace binade::data
