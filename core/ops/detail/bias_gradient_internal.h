// The bias gradient that linear and the convolutions share.
#pragma once
#include <binade/core/autograd/op.h>
#include <binade/kernels/reduce/reduce.h>

namespace binade {

// db[o] = sum of dy over all dimensions except `dim`; undefined if gradient `index` is not wanted.
inline Tensor bias_gradient(const Tensor& dy, int dim, Needs needs, int index) {
  Tensor db = needs.out(index);
  if (db.defined()) {
    Dims sizes = Dims::of(dy.dim(), 1), strides = Dims::of(dy.dim());
    sizes[dim] = db.numel();
    strides[dim] = db.strides()[0];
    kernels::reduce_forward(
        {.op = kernels::Reduce::sum, .x = dy, .y = make_view(db, sizes, strides)});
  }
  return db;
}

}  // namespace binade
