// `take` reads at indices, and `give` adds to zeros at indices. The gradient of each is the other
// function.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/rows_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>

namespace binade::detail {
namespace {

using kernels::kNoExemption;

void add_at(const Tensor& dx, const Tensor& index, const Tensor& dy, const Along& along) {
  kernels::fill({.y = dx, .value = 0});
  kernels::scatter_add({.op = along.op->name,
                        .index = index,
                        .src = dy,
                        .y = dx,
                        .dim = along.dim,
                        .exempt = along.exempt});
}

}  // namespace

Tensor take(const Tensor& x, const Tensor& index, const Along& along, bool mask) {
  Tensor y = empty(index.sizes(), x.dtype(), x.device());
  kernels::gather({.op = along.op->name,
                   .x = x,
                   .index = index,
                   .y = y,
                   .dim = along.dim,
                   .exempt = mask ? along.exempt : kNoExemption});
  return along.op->record(
      {x}, y, save(index),
      [sizes = x.sizes(), along](const Tensor& dy, Needs needs, const Tensor& index) -> Grads {
        if (grad_enabled()) {
          return {give(dy, index, sizes, along)};
        }
        Tensor dx = needs.out(0);
        add_at(dx, index, dy, along);
        return {dx};
      });
}

Tensor give(const Tensor& y, const Tensor& index, const Dims& sizes, const Along& along) {
  Tensor x = empty(sizes, y.dtype(), y.device());
  add_at(x, index, y, along);
  return along.op->record({y}, x, save(index),
                          [along](const Tensor& dx, const Tensor& index) -> Grads {
                            return {take(dx, index, along, true)};
                          });
}

Tensor index_of_rows(const Tensor& rows, const Dims& sizes, int d) {
  Dims strides = Dims::of(sizes.size());
  strides[d] = rows.dim() == 0 ? 1 : rows.strides()[0];
  return make_view(rows, sizes, strides);
}

Tensor take_rows(const Op& op, const Tensor& x, int d, const Tensor& rows) {
  Dims sizes = x.sizes();
  sizes[d] = rows.numel();
  return take(x, index_of_rows(rows, sizes, d), {&op, d});
}

Tensor last_writers(const Op& op, const Tensor& index, int64_t bound, int d) {
  Dims sizes = index.sizes(), strides = Dims::of(index.dim());
  sizes[d] = bound;
  strides[d] = 1;
  const Tensor order =
      make_view(arange(index.size(d), DType::i64, index.device()), index.sizes(), strides);
  Tensor last = empty(sizes, DType::i64, index.device());
  kernels::scatter({.op = op.name, .index = index, .src = order, .y = last, .dim = d});
  return eq(gather(last, d, index), order);
}

Tensor put_rows(const Op& op, const Tensor& x, int d, const Tensor& rows, const Tensor& src,
                bool accumulate) {
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  const Tensor index = index_of_rows(rows, src.sizes(), d);
  if (accumulate) {
    kernels::scatter_add({.op = op.name, .index = index, .src = src, .y = y, .dim = d});
  } else {
    kernels::scatter({.op = op.name, .index = index, .src = src, .y = y, .dim = d});
  }
  return op.record({x, src}, y, save(rows),
                   [op = &op, d, accumulate, sizes = src.sizes()](const Tensor& dy, Needs needs,
                                                                  const Tensor& rows) -> Grads {
                     Tensor dx = dy, dsrc = needs[1] ? take_rows(*op, dy, d, rows) : Tensor();
                     if (!accumulate && needs[0]) {
                       const Tensor zero = zeros({}, dy.dtype(), dy.device());
                       const Tensor none = make_view(zero, sizes, Dims::of(sizes.size()));
                       dx = put_rows(*op, dy, d, rows, none, false);
                     }
                     if (!accumulate && needs[1] && rows.numel() > 1) {
                       Dims along = Dims::of(dy.dim(), 1);
                       along[d] = rows.numel();
                       const Tensor last = last_writers(*op, rows, dy.size(d), 0);
                       dsrc = where(reshape(last, along), dsrc, 0.0);
                     }
                     return {dx, dsrc};
                   });
}

}  // namespace binade::detail
