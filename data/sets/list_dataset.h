// ListDataset: samples that a program has made, in memory. The sizes of their fields may differ.
//
//   std::vector<data::Sample> samples;
//   samples.push_back({.label = 1, .fields = {{"tokens", Tensor::from({3, 1, 4})}}});
//   data::ListDataset set(samples, {"noun", "verb"});
//   data::Loader loader(set, {.batch = 32, .collate = data::pad("tokens", 0)});
#pragma once
#include <binade/data/dataset.h>

namespace binade::data {

class ListDataset : public Dataset {
 public:
  // Fields on a device are copied to the CPU; others are shared, so a later change of them changes
  // the dataset. Throws unless all samples have the same fields with the same dtypes and the same
  // masks, all or none an image, values and a label; with class names, unless every label is the
  // number of one.
  explicit ListDataset(std::vector<Sample> samples, std::vector<std::string> class_names = {});

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  Sample get(int64_t index) const override;  // a copy
  int64_t class_count() const override { return static_cast<int64_t>(class_names_.size()); }
  std::vector<std::string> class_names() const override { return class_names_; }
  int channels() const override { return channels_; }
  uint64_t id(int64_t index) const override;  // of pixels, values, fields and masks
  std::optional<int64_t> label(int64_t index) const override;
  std::optional<int64_t> length(int64_t index, std::string_view field) const override;
  bool in_memory() const override { return true; }

 private:
  const Sample& at(int64_t index) const;

  std::vector<Sample> samples_;
  std::vector<std::string> class_names_;
  int channels_ = 0;
};

}  // namespace binade::data
