// Ops with indices. The gradient of reading is adding, and the other way round: both are made of
// `take`, which reads, and `give`, which adds to zeros.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/index.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/index/masked_select.h>

#include <algorithm>

namespace binade {
namespace {

using kernels::kNoExemption;

// The arguments of take and give besides tensors.
struct Along {
  const Op* op;
  int dim;
  int64_t exempt = kNoExemption;
};

Tensor give(const Tensor& y, const Tensor& index, const Dims& sizes, const Along& along);

void add_at(const Tensor& dx, const Tensor& index, const Tensor& dy, const Along& along) {
  kernels::fill({.y = dx, .value = 0});
  kernels::scatter_add({.op = along.op->name,
                        .index = index,
                        .src = dy,
                        .y = dx,
                        .dim = along.dim,
                        .exempt = along.exempt});
}

// y = x at index; x has the sizes of index except in dimension along.dim. Elements whose index is
// `along.exempt` get no gradient; with `mask` they are 0, else they are read like the others.
Tensor take(const Tensor& x, const Tensor& index, const Along& along, bool mask = false) {
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

void check_index(const char* op, const Tensor& x, const Tensor& index) {
  check(x.defined() && index.defined(), op, ": got an undefined tensor");
  check(index.dtype() == DType::i64, op, ": got an index of dtype ", index.dtype(),
        ", expected i64; convert it with to()");
  check(x.device() == index.device(), op, ": got a tensor on ", x.device(), " and an index on ",
        index.device(), ", expected one device; move them with to()");
}

// The part of t that indices of these sizes reach: all of dimension `dim`.
Tensor reached(const Op& op, const char* what, const Tensor& t, const Dims& index, int dim) {
  check(t.dim() == index.size(), op.name, ": got ", what, " of shape ", t.sizes(),
        " and an index of shape ", index, ", expected equal ranks");
  Tensor part = t;
  for (int d = 0; d < t.dim(); ++d) {
    check(d == dim || index[d] <= t.sizes()[d], op.name, ": got ", what, " of shape ", t.sizes(),
          " and an index of shape ", index, ", expected no larger sizes but in dimension ", dim);
    if (d != dim && index[d] < t.sizes()[d]) {
      part = slice(part, d, 0, index[d]);
    }
  }
  return part;
}

// The part of src that has the sizes of the index.
Tensor used_part(const Op& op, const Tensor& src, const Dims& index, int dim) {
  const Tensor part = reached(op, "src", src, index, dim);
  check(index[dim] <= part.sizes()[dim], op.name, ": got src of shape ", src.sizes(),
        " and an index of shape ", index, ", expected no larger index");
  return index[dim] == part.sizes()[dim] ? part : slice(part, dim, 0, index[dim]);
}

// A scalar as a tensor of one element.
Tensor with_dim(const Tensor& t) { return t.dim() == 0 ? reshape(t, {1}) : t; }

// y = the rows `rows` [n] of x along dimension d.
Tensor take_rows(const Op& op, const Tensor& x, int d, const Tensor& rows) {
  Dims sizes = x.sizes(), strides = Dims::of(x.dim());
  sizes[d] = rows.numel();
  strides[d] = rows.dim() == 0 ? 1 : rows.strides()[0];
  return take(x, make_view(rows, sizes, strides), {&op, d});
}

}  // namespace

Tensor index_select(const Tensor& x, int dim, const Tensor& index) {
  static constexpr Op kOp{"index_select", OpClass::movement, true};
  check_index(kOp.name, x, index);
  check(index.dim() <= 1, "index_select: got an index of shape ", index.sizes(),
        ", expected one dimension");
  const int d = wrap_dim(kOp.name, dim, x.dim());
  const Tensor y = take_rows(kOp, with_dim(x), d, index);
  return x.dim() == 0 ? reshape(y, {}) : y;
}

Tensor gather(const Tensor& x, int dim, const Tensor& index) {
  static constexpr Op kOp{"gather", OpClass::movement, true};
  check_index(kOp.name, x, index);
  const int d = wrap_dim(kOp.name, dim, x.dim());
  check(x.dim() == index.dim(), "gather: got x of shape ", x.sizes(), " and an index of shape ",
        index.sizes(), ", expected equal ranks");
  if (x.dim() == 0) {
    return reshape(gather(with_dim(x), 0, with_dim(index)), {});
  }
  return take(reached(kOp, "x", x, index.sizes(), d), index, {&kOp, d});
}

namespace {

constexpr Op kScatter{"scatter", OpClass::movement, true};

// The entries of index (along d) that are not overwritten by a later one with the same target.
Tensor last_writers(const Tensor& index, int64_t bound, int d) {
  Dims sizes = index.sizes(), strides = Dims::of(index.dim());
  sizes[d] = bound;
  strides[d] = 1;
  const Tensor order =
      make_view(arange(index.size(d), DType::i64, index.device()), index.sizes(), strides);
  Tensor last = empty(sizes, DType::i64, index.device());
  kernels::scatter({.op = kScatter.name, .index = index, .src = order, .y = last, .dim = d});
  return eq(gather(last, d, index), order);
}

// src has the sizes of index; it may be a broadcast view.
Tensor write_at(const Tensor& x, int d, const Tensor& index, const Tensor& src) {
  const Dims target = reached(kScatter, "x", x, index.sizes(), d).sizes();
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  kernels::scatter({.op = kScatter.name,
                    .index = index,
                    .src = src,
                    .y = make_view(y, target, y.strides()),
                    .dim = d});
  return kScatter.record({x, src}, y, save(index),
                         [d](const Tensor& dy, Needs needs, const Tensor& index) -> Grads {
                           Tensor dsrc;
                           if (needs[1]) {
                             dsrc = gather(dy, d, index);
                             if (index.size(d) > 1) {
                               dsrc = where(last_writers(index, dy.size(d), d), dsrc, 0.0);
                             }
                           }
                           return {needs[0] ? scatter(dy, d, index, 0.0) : Tensor(), dsrc};
                         });
}

}  // namespace

Tensor scatter(const Tensor& x_, int dim, const Tensor& index, const Tensor& src_) {
  check_index(kScatter.name, x_, index);
  check_index(kScatter.name, src_, index);
  const std::vector<Tensor> joined = detail::enter_joined(kScatter, {x_, src_});
  const Tensor &x = joined[0], &src = joined[1];
  check(src.dtype() == x.dtype(), "scatter: got x of dtype ", x.dtype(), " and src of dtype ",
        src.dtype(), ", expected one dtype");
  const int d = wrap_dim(kScatter.name, dim, x.dim());
  if (x.dim() == 0 && index.dim() == 0 && src.dim() == 0) {
    return reshape(scatter(with_dim(x), 0, with_dim(index), with_dim(src)), {});
  }
  return write_at(x, d, index, used_part(kScatter, src, index.sizes(), d));
}

Tensor scatter(const Tensor& x, int dim, const Tensor& index, double value) {
  check_index(kScatter.name, x, index);
  const int d = wrap_dim(kScatter.name, dim, x.dim());
  if (x.dim() == 0 && index.dim() == 0) {
    return reshape(scatter(with_dim(x), 0, with_dim(index), value), {});
  }
  const Tensor number = full({}, value, x.dtype(), x.device());
  return write_at(x, d, index, make_view(number, index.sizes(), Dims::of(index.dim())));
}

Tensor scatter_add(const Tensor& x_, int dim, const Tensor& index, const Tensor& src_) {
  static constexpr Op kOp{"scatter_add", OpClass::pointwise, true};
  check_index(kOp.name, x_, index);
  check_index(kOp.name, src_, index);
  check_floating(kOp.name, x_);
  auto [x, src] = kOp.enter(x_, src_);
  check(src.dtype() == x.dtype(), "scatter_add: got x of dtype ", x.dtype(), " and src of dtype ",
        src.dtype(), ", expected one dtype");
  const int d = wrap_dim(kOp.name, dim, x.dim());
  if (x.dim() == 0 && index.dim() == 0 && src.dim() == 0) {
    return reshape(scatter_add(with_dim(x), 0, with_dim(index), with_dim(src)), {});
  }
  const Dims target = reached(kOp, "x", x, index.sizes(), d).sizes();
  const Tensor part = used_part(kOp, src, index.sizes(), d);
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  // Where the index leaves rows of x out, only the others take part.
  const Tensor corner = make_view(y, target, y.strides());
  const Tensor sums = contiguous(corner);
  kernels::scatter_add({.op = kOp.name, .index = index, .src = part, .y = sums, .dim = d});
  if (!corner.is_contiguous()) {
    kernels::copy({.x = sums, .y = corner});
  }
  return kOp.record({x, part}, y, save(index),
                    [d](const Tensor& dy, Needs needs, const Tensor& index) -> Grads {
                      return {dy, needs[1] ? gather(dy, d, index) : Tensor()};
                    });
}

namespace {

constexpr Op kMaskedSelect{"masked_select", OpClass::movement, true};

Tensor spread(const Tensor& dy, const Tensor& mask, const Tensor& offsets);

Tensor select(const Tensor& x, const Tensor& mask, const Tensor& offsets, int64_t count) {
  Tensor y = empty({count}, x.dtype(), x.device());
  kernels::masked_select({.x = x, .mask = mask, .offsets = offsets, .y = y});
  return kMaskedSelect.record(
      {x}, y, save(mask, offsets),
      [](const Tensor& dy, const Tensor& mask, const Tensor& offsets) -> Grads {
        return {spread(dy, mask, offsets)};
      });
}

Tensor spread(const Tensor& dy, const Tensor& mask, const Tensor& offsets) {
  Tensor dx = empty(mask.sizes(), dy.dtype(), dy.device());
  kernels::masked_spread({.x = dy, .mask = mask, .offsets = offsets, .y = dx});
  return kMaskedSelect.record(
      {dy}, dx, save(mask, offsets),
      [count = dy.numel()](const Tensor& ddx, const Tensor& mask, const Tensor& offsets) -> Grads {
        return {select(ddx, mask, offsets, count)};
      });
}

}  // namespace

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check(x.defined() && mask.defined(), "masked_select: got an undefined tensor");
  check(mask.dtype() == DType::boolean && mask.sizes() == x.sizes(), "masked_select: got a mask ",
        mask.dtype(), " ", mask.sizes(), " for shape ", x.sizes(),
        ", expected bool of the same shape; use expand()");
  check(x.device() == mask.device(), "masked_select: got a tensor on ", x.device(),
        " and a mask on ", mask.device(), ", expected one device; move them with to()");
  const int64_t chunks = kernels::mask_offsets(x.numel());
  const Tensor offsets = empty({chunks}, DType::i64, x.device());
  kernels::mask_count({.mask = mask, .offsets = offsets});
  const auto count = static_cast<int64_t>(offsets.at(chunks - 1));
  return select(x, mask, offsets, count);
}

Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<int64_t> padding_idx) {
  static constexpr Op kOp{"embedding", OpClass::movement, true};
  check_index(kOp.name, weight, index);
  check_floating(kOp.name, weight);
  check(weight.dim() == 2, "embedding: got a weight of shape ", weight.sizes(),
        ", expected [rows, columns]");
  const int64_t rows = weight.size(0), columns = weight.size(1);
  const int64_t padding = padding_idx.value_or(kNoExemption);
  check(!padding_idx || (padding >= -rows && padding < rows), "embedding: got padding_idx ",
        padding, ", expected ", -rows, " to ", rows - 1);
  const Tensor flat = reshape(index, {index.numel()});
  Dims sizes = index.sizes();
  sizes.push_back(columns);
  const Tensor shared = make_view(flat, {index.numel(), columns}, {flat.strides()[0], 0});
  const int64_t exempt = padding_idx && padding < 0 ? padding + rows : padding;
  return reshape(take(weight, shared, {&kOp, 0, exempt}), sizes);
}

Tensor one_hot(const Tensor& index, int64_t classes) {
  check_index("one_hot", index, index);
  check(classes >= 1 || classes == -1, "one_hot: got ", classes,
        " classes, expected at least 1, or -1 for what the indices need");
  if (classes == -1) {
    check(index.numel() > 0, "one_hot: got no index, expected a number of classes");
    const Tensor host = contiguous(index.to(Device{}));
    const int64_t* values = host.data<int64_t>();
    classes = *std::max_element(values, values + host.numel()) + 1;
    check(classes >= 1, "one_hot: got negative indices, expected 0 or more");
  }
  Dims sizes = index.sizes();
  sizes.push_back(classes);
  Tensor y = empty(sizes, DType::i64, index.device());
  kernels::one_hot({.index = index, .y = y});
  return y;
}

}  // namespace binade
