#include <binade/core/autograd/op.h>
#include <binade/core/observe/exponents.h>
#include <binade/kernels/exponents/exponents.h>
#include <binade/train/precision/gradient_recorder_internal.h>

#include <algorithm>
#include <string_view>

namespace binade::train {

namespace {

// True if the op's backward gives each element of the gradient as it is, larger, or 0 instead.
bool chooses_zeros(const Node& node) {
  if (!node.op) {
    return false;
  }
  const std::string_view name = node.op->name;
  constexpr std::string_view kChoosing[] = {"relu",       "relu6", "dropout",    "max_pool2d",
                                            "max_pool1d", "where", "masked_fill"};
  return node.op->op_class == OpClass::movement
             ? name != "cast" && name != "policy_cast"
             : std::find(std::begin(kChoosing), std::end(kChoosing), name) != std::end(kChoosing);
}

}  // namespace

// After the backward of a node: notes the kind of gradient that each of its inputs gets.
void GradientRecorder::gradients(const GradientEvent& event) {
  const bool chooses = chooses_zeros(event.node);
  for (int i = 0; i < event.node.edge_count; ++i) {
    if (const Node* to = event.node.edges[i].get(); to && (*event.gradients)[i].defined()) {
      Parts& parts = parts_.try_emplace(to, chosen).first->second;
      parts = chooses ? parts : computed;
    }
  }
}

void GradientRecorder::upstream(const GradientEvent& event) {
  const Tensor& gradient = event.upstream;
  const auto found = parts_.find(&event.node);
  const bool is_chosen = found != parts_.end() && found->second == chosen;
  if (found != parts_.end() && !event.node.leaf) {
    parts_.erase(found);  // the node is done: another one may have its address
  }
  if (!gradient.defined() || gradient.numel() <= 1) {
    return;
  }
  const bool narrow = size_of(gradient.dtype()) == 2;
  Tensor& counts = !narrow ? counts_.wide : is_chosen ? counts_.chosen : counts_.narrow;
  (narrow ? counts_.narrow_dtype : counts_.wide_dtype) = gradient.dtype();
  if (!counts.defined()) {
    counts = zeros({kernels::kExponentCounters}, DType::i64, gradient.device());
  }
  count_exponents(gradient, counts);
}

std::optional<GradientSizes> read_sizes(const GradientCounts& counts, double scale) {
  const bool narrow = counts.narrow.defined() || counts.chosen.defined();
  if (!narrow && !counts.wide.defined()) {
    return std::nullopt;
  }
  ExponentCounts read;
  int64_t chosen_zeros = 0;
  for (const Tensor* part : {&counts.narrow, &counts.chosen, &counts.wide}) {
    if (part->defined() && (part != &counts.wide) == narrow) {
      const ExponentCounts more(*part, scale);
      read.add(more);
      chosen_zeros += part == &counts.chosen ? more.zeros() : 0;
    }
  }
  if (read.infinities() + read.nans() > 0) {
    return std::nullopt;
  }
  GradientSizes sizes{.stored = narrow ? counts.narrow_dtype : counts.wide_dtype,
                      .largest = read.largest(),
                      .smallest = read.smallest(),
                      .elements = read.numel(),
                      .zeros = read.zeros(),
                      .chosen_zeros = chosen_zeros};
  for (int e = ExponentCounts::kLeast - 1; e <= ExponentCounts::kMost; ++e) {
    if (read.at(e) > 0) {
      sizes.least_exponent = sizes.exponents.empty() ? e : sizes.least_exponent;
      sizes.exponents.resize(static_cast<size_t>(e - sizes.least_exponent) + 1);
      sizes.exponents.back() = read.at(e);
    }
  }
  return sizes;
}

}  // namespace binade::train
