// Ops with indices along one dimension. The parts that read and write whole rows are in
// core/ops/detail/rows.cpp.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/embedding_bag_internal.h>
#include <binade/core/ops/detail/rows_internal.h>
#include <binade/core/ops/index.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>

#include <algorithm>
#include <limits>

namespace binade {
namespace {

using detail::take;
using detail::take_rows;
using kernels::kNoExemption;

void check_index(const char* op, const Tensor& x, const Tensor& index) {
  check(x.defined() && index.defined(), op,
        ": got an undefined tensor, expected one with a value; assign it first");
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

// Checks operands that are added, or combined otherwise.
void check_terms(const char* op, const Tensor& x, const Tensor& src) {
  check(is_floating(x.dtype()) || x.dtype() == DType::i64 || x.dtype() == DType::i32, op,
        ": got dtype ", x.dtype(), ", expected a floating dtype, i64 or i32; convert with to()");
  check(src.dtype() == x.dtype(), op, ": got x of dtype ", x.dtype(), " and src of dtype ",
        src.dtype(), ", expected one dtype");
}

// Combines the terms with the part of y that they can reach. Rows of y beyond the sizes of the
// index take no part.
struct Scattered {
  const Op& op;
  const Tensor &index, &src, &y;
  int dim;
  kernels::ScatterOp combine = kernels::ScatterOp::sum;
};
void add_terms(const Scattered& a) {
  const Tensor part = used_part(a.op, a.src, a.index.sizes(), a.dim);
  const Dims target = reached(a.op, "x", a.y, a.index.sizes(), a.dim).sizes();
  const Tensor corner = make_view(a.y, target, a.y.strides());
  const Tensor sums = contiguous(corner);
  kernels::scatter_add({.op = a.op.name,
                        .index = a.index,
                        .src = part,
                        .y = sums,
                        .dim = a.dim,
                        .combine = a.combine});
  if (!corner.is_contiguous()) {
    kernels::copy({.x = sums, .y = corner});
  }
}

// A scalar as a tensor of one element.
Tensor with_dim(const Tensor& t) { return t.dim() == 0 ? reshape(t, {1}) : t; }

// Checks the arguments of an op that reads or writes rows; returns `dim` counted from 0.
int check_rows(const char* op, const Tensor& x, int dim, const Tensor& index) {
  check_index(op, x, index);
  check(index.dim() <= 1, op, ": got an index of shape ", index.sizes(),
        ", expected one dimension");
  return wrap_dim(op, dim, x.dim());
}

Tensor put(const Op& op, const Tensor& x, int d, const Tensor& index, const Tensor& src,
           bool accumulate) {
  check(src.dtype() == x.dtype(), op.name, ": got x of dtype ", x.dtype(), " and src of dtype ",
        src.dtype(), ", expected one dtype");
  Dims sizes = with_dim(x).sizes();
  sizes[d] = index.numel();
  check(src.sizes() == sizes || (x.dim() == 0 && src.dim() == 0 && index.numel() == 1), op.name,
        ": got x of shape ", x.sizes(), ", ", index.numel(), " indices and src of shape ",
        src.sizes(), ", expected src of shape ", sizes);
  const Tensor y = detail::put_rows(op, with_dim(x), d, index, with_dim(src), accumulate);
  return x.dim() == 0 ? reshape(y, {}) : y;
}

}  // namespace

Tensor index_select(const Tensor& x, int dim, const Tensor& index) {
  static constexpr Op kOp{"index_select", OpClass::movement, true};
  const int d = check_rows(kOp.name, x, dim, index);
  check(x.dim() > 0 || index.numel() == 1, "index_select: got ", index.numel(),
        " indices for a scalar, expected one");
  const Tensor y = take_rows(kOp, with_dim(x), d, index);
  return x.dim() == 0 ? reshape(y, {}) : y;
}

Tensor index_add(const Tensor& x_, int dim, const Tensor& index, const Tensor& src_, double alpha) {
  static constexpr Op kOp{"index_add", OpClass::pointwise, true};
  const int d = check_rows(kOp.name, x_, dim, index);
  check_index(kOp.name, src_, index);
  auto [x, src] = kOp.enter(x_, src_);
  check_terms(kOp.name, x, src);
  check(alpha == 1 || is_floating(x.dtype()), "index_add: got alpha ", alpha, " and dtype ",
        x.dtype(), ", expected a floating dtype; convert with to()");
  return put(kOp, x, d, index, alpha == 1 ? src : mul(src, alpha), true);
}

Tensor index_copy(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  static constexpr Op kOp{"index_copy", OpClass::movement, true};
  const int d = check_rows(kOp.name, x, dim, index);
  check_index(kOp.name, src, index);
  const std::vector<Tensor> joined = detail::enter_joined(kOp, {x, src});
  return put(kOp, joined[0], d, index, joined[1], false);
}

Tensor index_fill(const Tensor& x, int dim, const Tensor& index, double value) {
  static constexpr Op kOp{"index_fill", OpClass::movement, true};
  const int d = check_rows(kOp.name, x, dim, index);
  check_number(kOp.name, value, x.dtype());
  Dims sizes = with_dim(x).sizes();
  sizes[d] = index.numel();
  const Tensor number = full({}, value, x.dtype(), x.device());
  const Tensor src = make_view(number, sizes, Dims::of(sizes.size()));
  return reshape(detail::put_rows(kOp, with_dim(x), d, index, src, false), x.sizes());
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

Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int> dim) {
  static constexpr Op kOp{"take_along_dim", OpClass::movement, true};
  check_index(kOp.name, x, index);
  if (!dim) {
    return take(reshape(x, {-1}), reshape(index, {-1}), {&kOp, 0});
  }
  check(x.dim() == index.dim(), "take_along_dim: got x of shape ", x.sizes(),
        " and an index of shape ", index.sizes(), ", expected equal ranks");
  const int d = wrap_dim(kOp.name, *dim, x.dim());
  if (x.dim() == 0) {
    return reshape(take(with_dim(x), with_dim(index), {&kOp, 0}), {});
  }
  Dims from = x.sizes(), to = index.sizes();
  for (int i = 0; i < x.dim(); ++i) {
    if (i != d) {
      from[i] = to[i] = broadcast_sizes(kOp.name, {from[i]}, {to[i]})[0];
    }
  }
  return take(expand(x, from), expand(index, to), {&kOp, d});
}

namespace {

constexpr Op kScatter{"scatter", OpClass::movement, true};

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
  return kScatter.record(
      {x, src}, y, save(index), [d](const Tensor& dy, Needs needs, const Tensor& index) -> Grads {
        Tensor dsrc;
        if (needs[1]) {
          dsrc = gather(dy, d, index);
          if (index.size(d) > 1) {
            dsrc = where(detail::last_writers(kScatter, index, dy.size(d), d), dsrc, 0.0);
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

namespace {

constexpr Op kScatterAdd{"scatter_add", OpClass::pointwise, true};

// x plus src at index along d, in the name of `op`.
Tensor scattered_sum(const Op& op, const Tensor& x, int d, const Tensor& index, const Tensor& src) {
  reached(op, "x", x, index.sizes(), d);
  const Tensor part = used_part(op, src, index.sizes(), d);
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  add_terms({.op = op, .index = index, .src = part, .y = y, .dim = d});
  return op.record({x, part}, y, save(index),
                   [d](const Tensor& dy, Needs needs, const Tensor& index) -> Grads {
                     return {dy, needs[1] ? gather(dy, d, index) : Tensor()};
                   });
}

}  // namespace

Tensor scatter_add(const Tensor& x_, int dim, const Tensor& index, const Tensor& src_) {
  check_index(kScatterAdd.name, x_, index);
  check_index(kScatterAdd.name, src_, index);
  auto [x, src] = kScatterAdd.enter(x_, src_);
  check_terms(kScatterAdd.name, x, src);
  const int d = wrap_dim(kScatterAdd.name, dim, x.dim());
  if (x.dim() == 0 && index.dim() == 0 && src.dim() == 0) {
    return reshape(scatter_add(with_dim(x), 0, with_dim(index), with_dim(src)), {});
  }
  return scattered_sum(kScatterAdd, x, d, index, src);
}

namespace {

constexpr Op kScatterReduce{"scatter_reduce", OpClass::pointwise};
constexpr Op kScatterSum{"scatter_reduce", OpClass::pointwise, true};
using kernels::ScatterOp;

// Each of the elements that equal the largest one, y, gets the same share of dy.
Grads extreme_gradient(const Tensor& dy, int d, const Tensor& index, const Tensor& x,
                       const Tensor& src, const Tensor& y) {
  const Tensor x_is = cast(eq(x, y), dy.dtype());
  const Tensor src_is = cast(eq(src, gather(y, d, index)), dy.dtype());
  const Tensor share = div(dy, scattered_sum(kScatterSum, x_is, d, index, src_is));
  return {mul(x_is, share), mul(src_is, gather(share, d, index))};
}

// dx = dy (product of the other factors), which for a factor that is not 0 is dy y / x. If one
// factor is 0, its gradient is the product that has 1 in its place.
Grads product_gradient(const Tensor& dy, int d, const Tensor& index, const Tensor& x,
                       const Tensor& src, const Tensor& y) {
  const Tensor x_zero = eq(x, 0.0), src_zero = eq(src, 0.0);
  const Tensor zeros_of =
      scattered_sum(kScatterSum, cast(x_zero, y.dtype()), d, index, cast(src_zero, y.dtype()));
  Tensor others = empty(x.sizes(), x.dtype(), x.device());  // the product of what is not 0
  kernels::copy({.x = masked_fill(x, x_zero, 1), .y = others});
  add_terms({.op = kScatterReduce,
             .index = index,
             .src = masked_fill(src, src_zero, 1),
             .y = others,
             .dim = d,
             .combine = ScatterOp::prod});
  const Tensor whole = mul(dy, y), single = where(eq(zeros_of, 1.0), mul(dy, others), 0.0);
  return {where(x_zero, single, div(whole, masked_fill(x, x_zero, 1))),
          where(src_zero, gather(single, d, index),
                div(gather(whole, d, index), masked_fill(src, src_zero, 1)))};
}

// y = x combined with src by a product, the largest or the smallest element.
Tensor scatter_combined(const Tensor& x, int d, const Tensor& index, const Tensor& src,
                        ScatterOp combine) {
  const Tensor part = used_part(kScatterReduce, src, index.sizes(), d);
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  add_terms(
      {.op = kScatterReduce, .index = index, .src = part, .y = y, .dim = d, .combine = combine});
  const Tensor saved_y = y.detach();
  return kScatterReduce.record(
      {x, part}, y, save(index, x, part, saved_y),
      [d, combine](const Tensor& dy, Needs, const Tensor& index, const Tensor& x, const Tensor& src,
                   const Tensor& y) -> Grads {
        return combine == ScatterOp::prod ? product_gradient(dy, d, index, x, src, y)
                                          : extreme_gradient(dy, d, index, x, src, y);
      });
}

// x with neutral elements of the reduction at the index, where the terms replace x.
Tensor without_targets(const Tensor& x, int d, const Tensor& index, const Tensor& src,
                       ScatterOp combine) {
  if (combine == ScatterOp::sum || combine == ScatterOp::prod) {
    return scatter(x, d, index, combine == ScatterOp::sum ? 0.0 : 1.0);
  }
  if (!is_floating(x.dtype())) {  // an element that is one of the terms changes nothing
    return scatter(x, d, index, src);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return scatter(x, d, index, combine == ScatterOp::max ? -kInfinity : kInfinity);
}

}  // namespace

Tensor scatter_reduce(const Tensor& x_, int dim, const Tensor& index, const Tensor& src_,
                      std::string_view reduce, bool include_self) {
  check_index(kScatterReduce.name, x_, index);
  check_index(kScatterReduce.name, src_, index);
  auto [x, src] = kScatterReduce.enter(x_, src_);
  check_terms(kScatterReduce.name, x, src);
  const bool mean = reduce == "mean";
  check(mean || reduce == "sum" || reduce == "prod" || reduce == "amax" || reduce == "amin",
        "scatter_reduce: got reduce '", reduce, "', expected sum, prod, mean, amax or amin");
  check(!mean || is_floating(x.dtype()), "scatter_reduce: got dtype ", x.dtype(),
        ", expected a floating dtype for a mean; convert it with to()");
  const int d = wrap_dim(kScatterReduce.name, dim, x.dim());
  if (x.dim() == 0 && index.dim() == 0 && src.dim() == 0) {
    return reshape(
        scatter_reduce(with_dim(x), 0, with_dim(index), with_dim(src), reduce, include_self), {});
  }
  const ScatterOp combine = reduce == "prod"   ? ScatterOp::prod
                            : reduce == "amax" ? ScatterOp::max
                            : reduce == "amin" ? ScatterOp::min
                                               : ScatterOp::sum;
  reached(kScatterReduce, "x", x, index.sizes(), d);
  used_part(kScatterReduce, src, index.sizes(), d);
  const Tensor start = include_self ? x : without_targets(x, d, index, src, combine);
  if (combine != ScatterOp::sum) {
    return scatter_combined(start, d, index, src, combine);
  }
  Tensor sums = scattered_sum(kScatterSum, start, d, index, src);
  if (!mean) {
    return sums;
  }
  Tensor count = full(x.sizes(), 1, compute_dtype(x.dtype()), x.device());
  count = include_self ? count : scatter(count, d, index, 0.0);
  const Tensor ones = full(index.sizes(), 1, count.dtype(), x.device());
  add_terms({.op = kScatterSum, .index = index, .src = ones, .y = count, .dim = d});
  return div(sums, cast(count, sums.dtype()));
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

Tensor embedding_bag(const Tensor& weight, const Tensor& index, const Tensor& offsets,
                     const Tensor& per_sample_weights, const EmbeddingBagOptions& options) {
  return detail::embedding_bag({weight, index, offsets, per_sample_weights}, options);
}

}  // namespace binade
