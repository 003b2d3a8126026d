// Access to the gradients of parameters (internal to optim/).
#pragma once
#include <binade/core/tensor/parameter.h>

#include <vector>

namespace binade::optim {

// The leaf of a parameter that has a gradient now, else null.
inline Leaf* leaf_with_gradient(const Parameter& parameter) {
  if (!parameter.value.requires_grad()) {
    return nullptr;
  }
  auto* leaf = static_cast<Leaf*>(parameter.value.history().get());
  return leaf->has_grad ? leaf : nullptr;
}

// A range of an arena's gradients that carry one scale.
struct GradientRange {
  View grad;  // flat; gaps between parameters are zeros
  int segment;
  int64_t offset;
  double scale;
  Tensor tag;  // a factor of the scale on a device; undefined is 1
};

// The ranges of all gradients that exist and that this rank holds, in the order of memory. The
// ranges do not depend on the order and grouping of the parameters, so sums over them have the same
// bits. Moves gradients that are stored elsewhere into the arena.
std::vector<GradientRange> gradient_ranges(const Arena& arena,
                                           std::vector<const Parameter*> parameters);

// Moves a gradient that is stored elsewhere, for example after a recorded backward (create_graph).
// Throws if it belongs to the shards of several ranks and was not reduced.
void move_into_arena(const Arena& arena, const Parameter& parameter, Leaf& leaf);

// `numel` elements of a flat tensor, from `offset`; a null view if the tensor is undefined.
inline View flat_view(const Tensor& flat, int64_t offset, int64_t numel) {
  View view = flat;
  if (flat.defined()) {
    view.data += offset * static_cast<int64_t>(size_of(view.dtype));
    view.numel = numel;
    view.sizes = {numel};
    view.strides = {1};
  }
  return view;
}

// The sum of squares of the finite elements of a flat view, and the number of other elements.
struct Squares {
  double sum = 0;
  int64_t non_finite = 0;
};
Squares squares(const View& flat);
// The squares of the true gradients; waits for the device once.
Squares squares(const std::vector<GradientRange>& ranges, Device device);

// Sums over the ranks if each rank has the gradients of its own range only; it is then collective.
Squares squares_of_ranks(const Arena& arena, const Squares& own);

// Replaces inf by the largest finite number of the dtype and NaN by 0, in all gradients.
void replace_non_finite(const ParameterList& parameters);

}  // namespace binade::optim
