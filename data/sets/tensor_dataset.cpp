// TensorDataset: rows of tensors.
#include <binade/core/io/hash64.h>
#include <binade/data/fields_internal.h>
#include <binade/data/sets/tensor_dataset.h>

#include <cstring>

namespace binade::data {
namespace {

std::span<const std::byte> bytes_of_row(const Tensor& tensor, int64_t row) {
  const int64_t rows = tensor.size(0);
  const size_t bytes = static_cast<size_t>(tensor.numel() / rows) * size_of(tensor.dtype());
  const auto* data = static_cast<const std::byte*>(tensor.view().data);
  return {data + static_cast<size_t>(row) * bytes, bytes};
}

}  // namespace

Tensor copy_row(const Tensor& tensor, int64_t row) {
  Dims sizes;
  for (int d = 1; d < tensor.dim(); ++d) {
    sizes.push_back(tensor.size(d));
  }
  Tensor copy = empty(sizes, tensor.dtype());
  const std::span<const std::byte> bytes = bytes_of_row(tensor, row);
  if (!bytes.empty()) {
    std::memcpy(copy.view().data, bytes.data(), bytes.size());
  }
  return copy;
}

TensorDataset::TensorDataset(NamedTensors fields) : fields_(std::move(fields)) {
  check(!fields_.empty(), "tensor dataset: got no tensors, expected at least one");
  check_fields("tensor dataset", fields_);
  for (auto& [name, tensor] : fields_) {
    const Tensor& first = fields_.front().second;
    check(tensor.dim() >= 1, "tensor dataset: '", name,
          "' is a scalar, expected a first dimension of samples");
    check(tensor.size(0) == first.size(0), "tensor dataset: '", name, "' is ", tensor.sizes(),
          ", expected ", first.size(0), " rows as in '", fields_.front().first, "' ",
          first.sizes());
    tensor = plain(tensor);
  }
  size_ = fields_.front().second.size(0);
}

Sample TensorDataset::get(int64_t index) const {
  check(index >= 0 && index < size_, "tensor dataset: got index ", index, ", expected one of ",
        size_);
  Sample sample;
  sample.fields.reserve(fields_.size());
  for (const auto& [name, tensor] : fields_) {
    sample.fields.emplace_back(name, copy_row(tensor, index));
  }
  return sample;
}

uint64_t TensorDataset::id(int64_t index) const {
  Hash64 hash;
  for (const auto& [name, tensor] : fields_) {
    hash.add(name);
    hash.add(static_cast<uint64_t>(tensor.dtype()));
    hash.add(bytes_of_row(tensor, index));
  }
  return hash.value();
}

std::optional<int64_t> TensorDataset::label(int64_t index) const {
  const Tensor* labels = find_field(fields_, "labels");
  if (labels == nullptr || labels->dim() != 1 || is_floating(labels->dtype())) {
    return std::nullopt;
  }
  return labels->dtype() == DType::i64 ? labels->data<int64_t>()[index]
                                       : static_cast<int64_t>(labels->at(index));
}

std::optional<int64_t> TensorDataset::length(int64_t /*index*/, std::string_view field) const {
  const Tensor* tensor = find_field(fields_, field);
  return tensor != nullptr && tensor->dim() > 1 ? std::optional(tensor->size(1)) : std::nullopt;
}

}  // namespace binade::data
