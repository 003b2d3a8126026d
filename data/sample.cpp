// Sample, Batch, and the functions on named tensors that both share.
#include <binade/core/io/hash64.h>
#include <binade/data/batch.h>
#include <binade/data/fields_internal.h>
#include <binade/data/sample_internal.h>

#include <algorithm>
#include <span>

namespace binade::data {
namespace {

constexpr std::string_view kImages = "images", kLabels = "labels";

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    list += (list.empty() ? "" : ", ") + name;
  }
  return list.empty() ? "none" : list;
}

void add_tensor(Hash64& hash, const std::string& name, const Tensor& tensor) {
  const Tensor values = plain(tensor);
  hash.add(name);
  hash.add(static_cast<uint64_t>(values.dtype()));
  for (const int64_t size : values.sizes()) {
    hash.add(static_cast<uint64_t>(size));
  }
  const size_t bytes = static_cast<size_t>(values.numel()) * size_of(values.dtype());
  hash.add(std::span(static_cast<const std::byte*>(values.view().data), bytes));
}

void add_image(Hash64& hash, const Image& image) {
  hash.add(static_cast<uint64_t>(image.height));
  hash.add(static_cast<uint64_t>(image.width));
  hash.add(static_cast<uint64_t>(image.channels));
  hash.add(std::as_bytes(std::span(image.pixels)));
}

}  // namespace

const Tensor* find_field(const NamedTensors& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return field.first == name; });
  return found == fields.end() || !found->second.defined() ? nullptr : &found->second;
}

void set_field(NamedTensors& fields, std::string_view name, Tensor value) {
  check(!name.empty(), "set: got a field without a name");
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return field.first == name; });
  if (!value.defined()) {
    if (found != fields.end()) {
      fields.erase(found);
    }
  } else if (found != fields.end()) {
    found->second = std::move(value);
  } else {
    fields.emplace_back(name, std::move(value));
  }
}

std::string names_of(const NamedTensors& fields) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : fields) {
    names.push_back(name);
  }
  return joined(names);
}

void check_fields(const char* op, const NamedTensors& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& [name, tensor] = fields[i];
    check(!name.empty(), op, ": got a field without a name");
    check(tensor.defined(), op, ": field '", name, "' is an undefined tensor");
    for (size_t j = 0; j < i; ++j) {
      check(fields[j].first != name, op, ": got two fields '", name,
            "', expected one of each name");
    }
  }
}

Tensor plain(const Tensor& tensor) { return tensor.detach().to(Device{}).contiguous(); }

const Tensor& Sample::operator[](std::string_view name) const {
  const Tensor* field = find_field(fields, name);
  check(field != nullptr, "sample: got no field '", name, "', expected one of: ", names_of(fields));
  return *field;
}

bool Sample::has(std::string_view name) const { return find_field(fields, name) != nullptr; }

void Sample::set(std::string_view name, Tensor value) { set_field(fields, name, std::move(value)); }

Sample copy_without_image(const Sample& sample) {
  Sample copy;
  copy.label = sample.label;
  copy.values = sample.values;
  copy.fields = sample.fields;
  copy.masks = sample.masks;
  copy.boxes = sample.boxes;
  for (auto& [name, tensor] : copy.fields) {
    tensor = tensor.defined() ? tensor.detach().clone() : tensor;
  }
  return copy;
}

Sample copy_of(const Sample& sample) {
  Sample copy = copy_without_image(sample);
  copy.image = sample.image;
  return copy;
}

void move_boxes_to_fields(Sample& sample) {
  for (const auto& [name, boxes] : sample.boxes) {
    const std::string labels = name + "_labels";
    check(!name.empty() && !sample.has(name) && !sample.has(labels), "got the boxes '", name,
          "' beside a field '", name, "' or '", labels, "'; rename one");
    check(boxes.labels.empty() || boxes.labels.size() == boxes.corners.size(), "got ",
          std::ssize(boxes.labels), " labels for the ", std::ssize(boxes.corners), " boxes '", name,
          "'");
    Tensor corners = empty({std::ssize(boxes.corners), 4}, DType::f32);
    float* to = corners.data<float>();
    for (const auto& corner : boxes.corners) {
      to = std::copy(corner.begin(), corner.end(), to);
    }
    sample.set(name, std::move(corners));
    if (!boxes.labels.empty() || boxes.corners.empty()) {
      Tensor values = empty({std::ssize(boxes.labels)}, DType::i64);
      std::copy(boxes.labels.begin(), boxes.labels.end(), values.data<int64_t>());
      sample.set(labels, std::move(values));
    }
  }
  sample.boxes.clear();
}

uint64_t content_hash(const Sample& sample) {
  Hash64 hash;
  add_image(hash, sample.image);
  hash.add(std::as_bytes(std::span(sample.values)));
  for (const auto& [name, tensor] : sample.fields) {
    add_tensor(hash, name, tensor);
  }
  for (const auto& [name, mask] : sample.masks) {
    hash.add(name);
    add_image(hash, mask);
  }
  for (const auto& [name, boxes] : sample.boxes) {
    hash.add(name);
    hash.add(std::as_bytes(std::span(boxes.corners)));
    hash.add(std::as_bytes(std::span(boxes.labels)));
  }
  return hash.value();
}

const Tensor& Batch::operator[](std::string_view name) const {
  const Tensor* field = name == kImages   ? &images
                        : name == kLabels ? &labels
                                          : find_field(fields, name);
  check(field != nullptr && field->defined(), "batch: got no field '", name,
        "', expected one of: ", joined(names()));
  return *field;
}

bool Batch::has(std::string_view name) const {
  return name == kImages   ? images.defined()
         : name == kLabels ? labels.defined()
                           : find_field(fields, name) != nullptr;
}

std::vector<std::string> Batch::names() const {
  std::vector<std::string> names;
  if (images.defined()) {
    names.emplace_back(kImages);
  }
  if (labels.defined()) {
    names.emplace_back(kLabels);
  }
  for (const auto& [name, tensor] : fields) {
    names.push_back(name);
  }
  return names;
}

void Batch::set(std::string_view name, Tensor value) {
  if (name == kImages) {
    images = std::move(value);
  } else if (name == kLabels) {
    labels = std::move(value);
  } else {
    set_field(fields, name, std::move(value));
  }
}

Batch Batch::to(Device device) const {
  Batch moved = *this;
  for (const std::string& name : names()) {
    moved.set(name, (*this)[name].to(device));
  }
  return moved;
}

}  // namespace binade::data
