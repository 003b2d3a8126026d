// ListDataset: samples in memory.
#include <binade/data/fields_internal.h>
#include <binade/data/sample_internal.h>
#include <binade/data/sets/list_dataset.h>

namespace binade::data {
namespace {

bool has_image(const Sample& sample) { return !sample.image.pixels.empty(); }

// What all samples must have in common, for messages too: "image, label, 'x' f32, mask 'm'".
std::string kind_of(const Sample& sample) {
  std::string kind;
  const auto add = [&kind](const std::string& part) { kind += (kind.empty() ? "" : ", ") + part; };
  if (has_image(sample)) {
    add("image");
  }
  if (!sample.values.empty()) {
    add("values");
  }
  if (sample.label != kNoLabel) {
    add("label");
  }
  for (const auto& [name, tensor] : sample.fields) {
    add(text("'", name, "' ", tensor.dtype()));
  }
  for (const auto& [name, mask] : sample.masks) {
    add(text("mask '", name, "'"));
  }
  for (const auto& [name, boxes] : sample.boxes) {
    add(text("boxes '", name, "'"));
  }
  return kind.empty() ? "nothing" : kind;
}

// Grey and coloured pictures may stand in one list; then the loader looks at each.
int channels_of(const std::vector<Sample>& samples) {
  if (samples.empty() || !has_image(samples.front())) {
    return 0;
  }
  const int channels = samples.front().image.channels;
  for (const Sample& sample : samples) {
    if (sample.image.channels != channels) {
      return kUnknownChannels;
    }
  }
  return channels;
}

}  // namespace

ListDataset::ListDataset(std::vector<Sample> samples, std::vector<std::string> class_names)
    : samples_(std::move(samples)), class_names_(std::move(class_names)) {
  for (int64_t i = 0; i < size(); ++i) {
    Sample& sample = samples_[static_cast<size_t>(i)];
    check_fields("list dataset", sample.fields);
    for (auto& [name, tensor] : sample.fields) {
      tensor = plain(tensor);
    }
    const std::string kind = kind_of(sample), first = kind_of(samples_.front());
    check(kind == first, "list dataset: got ", kind, " in sample ", i, ", expected ", first,
          " as in sample 0");
    const std::optional<int64_t> number = label(i);
    check(class_names_.empty() || (number && *number >= 0 && *number < class_count()),
          "list dataset: got ", number ? text("label ", *number) : "no label", " in sample ", i,
          ", expected 0 to ", class_count() - 1, ", the number of a class name");
  }
  channels_ = channels_of(samples_);
}

const Sample& ListDataset::at(int64_t index) const {
  check(index >= 0 && index < size(), "list dataset: got index ", index, ", expected one of ",
        size());
  return samples_[static_cast<size_t>(index)];
}

Sample ListDataset::get(int64_t index) const { return copy_of(at(index)); }

uint64_t ListDataset::id(int64_t index) const { return content_hash(at(index)); }

std::optional<int64_t> ListDataset::label(int64_t index) const {
  const Sample& sample = at(index);
  const Tensor* labels = find_field(sample.fields, "labels");
  if (labels == nullptr) {
    return sample.label != kNoLabel ? std::optional(sample.label) : std::nullopt;
  }
  return labels->dim() == 0 && !is_floating(labels->dtype())
             ? std::optional(static_cast<int64_t>(labels->item()))
             : std::nullopt;
}

std::optional<int64_t> ListDataset::length(int64_t index, std::string_view field) const {
  const Tensor* tensor = find_field(at(index).fields, field);
  return tensor != nullptr && tensor->dim() > 0 ? std::optional(tensor->size(0)) : std::nullopt;
}

}  // namespace binade::data
