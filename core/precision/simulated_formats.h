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
//
// Sums can be simulated too: .sums = {{.op = "linear", .sum = accumulation("f16/chunks=64")}}.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/core/owned.h>
#include <binade/core/precision/format_scheme.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace binade {

class Node;

// A number format, then words after slashes: sequential, pairwise, kahan, chunks or chunks=N; and
// nearest, toward-zero or stochastic. "f16", "f16/chunks=64", "bf16/kahan/stochastic".
Accumulation accumulation(const std::string& text);
std::string to_string(const Accumulation& sum);  // that accumulation() reads back
inline bool operator==(const Accumulation& a, const Accumulation& b) {
  return a.format == b.format && a.order == b.order && a.chunk == b.chunk &&
         a.rounding == b.rounding;
}

// The ops of a module whose sums are rounded at every addition, forward and backward.
struct AccumulationRule {
  // One of summed_ops(), or a pattern that only those match: "*mm". Empty: every contraction; one
  // that is not among them is an error where it runs. bmm and outer are "matmul"; einsum and
  // feedforward are made of matmul, linear and sum.
  std::string op = {};
  std::string module = {};  // as in PrecisionRule: a path, and everything below it
  Accumulation sum = {};

  bool operator==(const AccumulationRule&) const = default;
};
// "f16/kahan of linear in encoder"
std::string to_string(const AccumulationRule& rule);
// linear, matmul, addmm, baddbmm, sum and mean. The bias of linear is added to the rounded sum.
const std::vector<std::string>& summed_ops();

struct FormatSchemes {
  std::optional<FormatScheme> weights = {}, activations = {}, gradients = {};
  std::vector<AccumulationRule> sums = {};  // the last one that matches an op counts

  bool any() const { return weights || activations || gradients || !sums.empty(); }
  bool operator==(const FormatSchemes&) const = default;
};
// "weights mxfp8, gradients e5m2"
std::string to_string(const FormatSchemes& schemes);

// The precision with simulated formats instead of those that it has; without any: none. Throws for
// an AccumulationRule of an op that cannot be simulated.
//
// Delayed scales have a history per operand of each call: the module, the op, and how many calls of
// it came before in this forward of the module. A history begins empty. A forward that is not
// recorded for backward, as in an evaluation, reads the histories and leaves them as they are; an
// operand without one then takes the scale of its own largest magnitude. nn::Module::to() gives a
// model histories of its own, and checkpoints have them (nn::format_histories()). Delayed
// scales cannot be recorded as a CUDA graph.
Precision with_formats(const Precision& precision, const FormatSchemes& schemes);
FormatSchemes formats_of(const Precision& precision);
// The same precision; if it has delayed scales, with empty histories of its own.
Precision with_new_histories(const Precision& precision);

class SimulatedFormats {
 public:
  explicit SimulatedFormats(FormatSchemes schemes);
  ~SimulatedFormats();
  SimulatedFormats(const SimulatedFormats&) = delete;
  SimulatedFormats& operator=(const SimulatedFormats&) = delete;

  const FormatSchemes& schemes() const { return schemes_; }
  bool has_delayed() const;
  // Numbers this call of a contraction among those of its op in this scope; 0 without delayed
  // scales. Throws if its sums are to be simulated and cannot be.
  int64_t begin_call(const Op& op, const PrecisionScope& scope) const;
  struct Input {
    const Op& op;
    int64_t call;
    size_t index;
  };
  // An input of a contraction in its format; undefined if it has none. `given`: before casts.
  Tensor rounded_input(const Input& input, const Tensor& given, const Tensor& cast) const;
  // The gradient of a result of a call; `output`: which of its results.
  Tensor rounded_gradient(const Node& node, int64_t call, int output, const Tensor& gradient) const;
  // How this op sums in a module; null: as always.
  const Accumulation* sum_of(const Op& op, uint32_t module) const;

  // Copies of what delayed scales remember: for "MODULE/OP/CALL/inputI" or "MODULE/OP/CALL/outputI"
  // the largest magnitudes of its last uses, f32 [uses], the oldest first. Thread-safe.
  NamedTensors histories() const;
  // Replaces all of them. Throws, and changes nothing, if a name or tensor has another form.
  void set_histories(const NamedTensors& tensors) const;

 private:
  class Histories;
  struct Place;
  Tensor delayed_scale(const Tensor& x, const FormatScheme& scheme, const Place& place) const;
  Tensor rounded(const Tensor& x, FormatScheme scheme, const Place& place) const;

  FormatSchemes schemes_;
  Owned<Histories> histories_;
};

namespace detail {
// Makes the gradient of a contraction's result take its format before its backward. `output`: which
// result.
void simulate_gradient(Node& node, int output = 0);
}  // namespace detail

}  // namespace binade
