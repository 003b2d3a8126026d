// Collate: how the tensors of single samples become the tensors of a batch.
//
//   data::Loader loader(texts, {.batch = 32, .collate = data::pad("tokens", 0)});
//   batch["tokens"], batch["tokens_mask"]   // [32, longest]
#pragma once
#include <binade/data/batch.h>
#include <binade/data/sample.h>

#include <concepts>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

// Adds fields to `batch`, in which images, labels, masks, size, first, indices and epoch are set.
// It is called from several threads at once and must be a pure function of its arguments. Take
// random numbers, for example, from philox::Stream(seed, batch.epoch << 40 | batch.first). An Error
// ends the epoch, under every BadFilePolicy.
using Collate = std::function<void(std::span<const Sample> samples, Batch& batch)>;

// The default: every field of the samples becomes [N, sizes...]. If samples differ in sizes, dtype
// or fields, the error names the sample and the field.
Collate stack();

// How a field of samples of different sizes is padded.
struct Padding {
  std::string field;
  double value = 0;      // at the end; must be a value of the dtype
  int dims = 1;          // how many leading dimensions may differ; others must be equal
  int64_t multiple = 1;  // padded sizes are multiples of it
  bool mask = true;  // adds FIELD_mask, [N, padded dimensions] bool: true where there is a value
};
// pad() pads the given fields to the largest sizes in the batch, and stacks the others. The form
// for a vector is a template, which braces cannot select: numbers in braces must select the
// transform pad (augment/augment.h). pad({}) means no fields.
Collate collate_padded(std::vector<Padding> fields);
inline Collate pad(std::initializer_list<Padding> fields) { return collate_padded(fields); }
template <std::same_as<std::vector<Padding>> Fields>
Collate pad(const Fields& fields) {
  return collate_padded(fields);
}
template <std::convertible_to<std::string_view> Name>
Collate pad(const Name& field, double value = 0) {
  return collate_padded({{.field = std::string(field), .value = value}});
}

// For a Collate of your own: one field of all samples, stacked or padded.
Tensor stack_field(std::span<const Sample> samples, const std::string& field);
Tensor pad_field(std::span<const Sample> samples, const Padding& padding);
// true where pad_field has a value.
Tensor padding_mask(std::span<const Sample> samples, const Padding& padding);

}  // namespace binade::data
