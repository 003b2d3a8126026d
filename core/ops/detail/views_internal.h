// Views that many ops make, without recording.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <utility>

namespace binade {

// [.., m, n] as [.., n, m].
inline Tensor transposed(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  const int last = t.dim() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return make_view(t, sizes, strides);
}

// t with these sizes, to which it broadcasts: strides of 0 where it is repeated.
inline Tensor broadcast_view(const Tensor& t, const Dims& sizes) {
  if (t.sizes() == sizes) {
    return t.detach();
  }
  Dims strides = Dims::of(sizes.size());
  const int lead = sizes.size() - t.dim();
  for (int d = lead; d < sizes.size(); ++d) {
    strides[d] = t.sizes()[d - lead] == 1 ? 0 : t.strides()[d - lead];
  }
  return make_view(t, sizes, strides);
}

}  // namespace binade
