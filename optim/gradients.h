// Access to the gradients of parameters (internal to optim/).
#pragma once
#include <binade/core/parameter.h>

namespace binade::optim {

// The leaf of a parameter that has a gradient now, else null.
inline Leaf* leaf_with_gradient(const Parameter& parameter) {
  if (!parameter.value.requires_grad()) {
    return nullptr;
  }
  auto* leaf = static_cast<Leaf*>(parameter.value.history().get());
  return leaf->has_grad ? leaf : nullptr;
}

// `numel` elements of a flat tensor, from `offset`; a null view where the tensor is undefined.
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

// The sum of squares of the finite elements of a flat view, and the number of the others.
struct Squares {
  double sum = 0;
  int64_t non_finite = 0;
};
Squares squares(const View& flat);

// Replaces inf by the largest finite number of the dtype and NaN by 0, in all gradients.
void replace_non_finite(const ParameterList& parameters);

}  // namespace binade::optim
