// Simulated formats: a model computes as if the operands of its contractions (matrix products,
// convolutions, attention, recurrent layers) were stored in other number formats, as in FP8 and FP4
// training: weights and activations are rounded before the forward product, the gradient of its
// result before the two products of backward. Sums and everything else stay as the precision policy
// says; vectors (biases) are not rounded. Weights are rounded from their exact values for each use,
// so the optimizer sees no rounding.
//
//   model.to(device, with_formats(Precision::full(), {.weights = format_scheme("mxfp8"),
//                                                     .activations = format_scheme("mxfp8"),
//                                                     .gradients = format_scheme("mxfp8-e5m2")}));
//
// Blocks lie along the dimension that the forward product sums over (of a convolution the
// channels), and of gradients along the last one (the channels). Recurrent layers round their
// inputs and weights, not the state between their steps.
#pragma once
#include <binade/core/precision/format_scheme.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/tensor.h>

#include <memory>
#include <optional>
#include <string>

namespace binade {

class Node;

struct FormatSchemes {
  std::optional<FormatScheme> weights = {}, activations = {}, gradients = {};

  bool any() const { return weights || activations || gradients; }
  bool operator==(const FormatSchemes&) const = default;
};
// "weights mxfp8, gradients e5m2"
std::string to_string(const FormatSchemes& schemes);

// The precision with simulated formats instead of those that it has; without any: none. Delayed
// scales have a history per operand of each op and module, which begins empty and is part of no
// checkpoint; they cannot be recorded as a CUDA graph.
Precision with_formats(const Precision& precision, const FormatSchemes& schemes);
FormatSchemes formats_of(const Precision& precision);

class SimulatedFormats {
 public:
  explicit SimulatedFormats(FormatSchemes schemes);
  ~SimulatedFormats();
  SimulatedFormats(const SimulatedFormats&) = delete;
  SimulatedFormats& operator=(const SimulatedFormats&) = delete;

  const FormatSchemes& schemes() const { return schemes_; }
  // Input `index` of a contraction in its format; undefined if it has none. `given`: before casts.
  Tensor rounded_input(const Op& op, size_t index, const Tensor& given, const Tensor& cast) const;
  Tensor rounded_gradient(const Node& node, const Tensor& gradient) const;

 private:
  struct Histories;
  struct Place;
  Tensor rounded(const Tensor& x, FormatScheme scheme, const Place& place) const;

  FormatSchemes schemes_;
  std::unique_ptr<Histories> histories_;
};

namespace detail {
// Makes the gradient of a contraction's result take its format before its backward.
void simulate_gradient(Node& node);
}  // namespace detail

}  // namespace binade
