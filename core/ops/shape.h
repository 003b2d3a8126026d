// Ops that change the shape. Most return views. A negative dim counts from the end. All are
// differentiable any number of times, in every dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

Tensor reshape(const Tensor& x, const Dims& sizes);  // one size may be -1; a view if possible
Tensor flatten(const Tensor& x, int first = 0, int last = -1);
Tensor permute(const Tensor& x, const Dims& order);  // a view
Tensor transpose(const Tensor& x, int i, int j);     // a view
Tensor expand(const Tensor& x, const Dims& sizes);   // a view with stride 0; -1 keeps a size
// A view of the elements start, start + step, ... before end. As in PyTorch negative bounds count
// from the end, and bounds beyond the dimension end there.
Tensor slice(const Tensor& x, int dim, int64_t start, int64_t end, int64_t step = 1);
// The elements at `index` of dimension `dim`, as a view without this dimension; a negative index
// counts from the end. x[i] is select(x, 0, i).
Tensor select(const Tensor& x, int dim, int64_t index);
Tensor narrow(const Tensor& x, int dim, int64_t start, int64_t length);  // a view
Tensor unsqueeze(const Tensor& x, int dim);
Tensor squeeze(const Tensor& x);           // without all dimensions of size 1
Tensor squeeze(const Tensor& x, int dim);  // without this dimension, if its size is 1
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);  // a view
inline Tensor movedim(const Tensor& x, int source, int destination) {
  return movedim(x, Dims{source}, Dims{destination});
}
// A copy with x's strides if they are dense, else row-major.
Tensor clone(const Tensor& x);
Tensor contiguous(const Tensor& x);     // x itself if it is row-major
Tensor channels_last(const Tensor& x);  // [N, C, ...] with C innermost; x itself if it is so

}  // namespace binade
