// Sums and means, largest and smallest elements and their indices, any, all, and the functions that
// all reductions share.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/accumulated_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/reduced_internal.h>
#include <binade/core/ops/reduce.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/reduce/reduce.h>

namespace binade {

Dims detail::kept_sizes(const char* op, const Tensor& x, const Dims& dims) {
  Dims sizes = x.sizes();
  for (int i = 0; i < sizes.size() && dims.empty(); ++i) {
    sizes[i] = 1;
  }
  bool seen[kMaxDims] = {};
  for (int64_t d : dims) {
    const int dim = wrap_dim(op, d, x.dim());
    check(!seen[dim], op, ": got dimension ", d, " twice in ", dims);
    seen[dim] = true;
    if (x.dim() > 0) {
      sizes[dim] = 1;
    }
  }
  return sizes;
}

Tensor detail::drop_reduced(const char* op, const Tensor& y, const Dims& dims) {
  Dims sizes, strides;
  for (int i = 0; i < y.dim(); ++i) {
    bool reduced = dims.empty();
    for (int64_t d : dims) {
      reduced |= wrap_dim(op, d, y.dim()) == i;
    }
    if (!reduced) {
      sizes.push_back(y.sizes()[i]);
      strides.push_back(y.strides()[i]);
    }
  }
  return make_view(y, sizes, strides);
}

Tensor detail::finish_reduction(const char* op, const Tensor& x, const Tensor& y, const Dims& dims,
                                bool keepdim) {
  Tensor result = y;
  if (y.dtype() != x.dtype()) {
    result = empty(y.sizes(), x.dtype(), x.device());
    kernels::copy({.x = y, .y = result});
  }
  return keepdim ? result : drop_reduced(op, result, dims);
}

namespace {

using detail::at_least_1d;
using detail::drop_reduced;
using detail::finish_reduction;
using detail::kept_sizes;
using detail::record_chosen;
using kernels::Reduce;
using kernels::ReduceSlope;

// Sum and mean. The gradient broadcasts dy over the reduced elements.
Tensor reduce(const Op& op, Reduce kind, const Tensor& x_, const Dims& dims, bool keepdim) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  const bool floating = is_floating(x.dtype());
  check(floating || kind == Reduce::sum, op.name, ": got dtype ", x.dtype(),
        ", expected a floating dtype; convert with to()");
  const Dims kept = kept_sizes(op.name, x, dims);
  Tensor full = empty(kept, floating ? x.dtype() : DType::i64, x.device());
  const double count =
      kind == Reduce::mean ? static_cast<double>(x.numel()) / static_cast<double>(full.numel()) : 1;
  if (const Accumulation* sum = floating ? detail::simulated_sum(op) : nullptr) {
    detail::accumulate_elements(x, full, count, *sum);
  } else {
    kernels::reduce_forward({.op = kind, .x = x, .y = full});
  }
  Tensor y = keepdim ? full : drop_reduced(op.name, full, dims);
  return op.record({x}, y, save(), [kept, sizes = x.sizes(), count](const Tensor& dy) -> Grads {
    Tensor spread = reshape(dy, kept);
    return {expand(count == 1 ? spread : div(spread, count), sizes)};
  });
}

void check_some(const char* op, const Tensor& x, const Dims& kept) {
  check(x.numel() > 0 || element_count(kept) == 0, op, ": got shape ", x.sizes(),
        ", expected at least one element to reduce");
}

// dx = dy / count where x = y. If a result is NaN, equal_or_nan gives NaN to all elements that were
// reduced (PyTorch's amax and amin); equal shares dy among the NaN elements (its max and min).
Tensor extreme(const Op& op, Reduce kind, ReduceSlope slope, const Tensor& x_, const Dims& dims,
               bool keepdim) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  const Dims kept = kept_sizes(op.name, x, dims);
  check_some(op.name, x, kept);
  Tensor y = empty(kept, x.dtype(), x.device()), count;
  if (x.requires_grad() && grad_enabled()) {
    count = empty(kept, compute_dtype(x.dtype()), x.device());
  }
  kernels::reduce_forward({.op = kind, .x = x, .y = y, .aux = count});
  Tensor result = finish_reduction(op.name, x, y, dims, keepdim);
  return op.record(
      {x}, result, save(x, y, count),
      [slope](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& y,
              const Tensor& count) -> Grads {
        const DType wide = count.dtype();
        const Tensor a = div(cast(reshape(dy, y.sizes()), wide), count);
        Tensor dx = needs.out_like(0, x);
        kernels::reduce_backward({.op = slope, .x = x, .a = a, .b = cast(y, wide), .dx = dx});
        return {dx};
      });
}

struct Along {
  Tensor values, indices;  // with size 1 at dim
  int dim;
};

Along find_along(const char* op, const Tensor& x, int dim, bool smallest, bool with_values) {
  check_defined(op, x);
  check(is_floating(x.dtype()) || x.dtype() == DType::i64 || x.dtype() == DType::i32, op,
        ": got dtype ", x.dtype(), ", expected a floating dtype, i64 or i32; convert with to()");
  const int d = wrap_dim(op, dim, x.dim());
  const Tensor lines = at_least_1d(x);
  Dims kept = lines.sizes();
  kept[d] = 1;
  check_some(op, x, kept);
  Along y = {with_values ? empty(kept, x.dtype(), x.device()) : Tensor(),
             empty(kept, DType::i64, x.device()), d};
  kernels::argmax({.x = lines, .y = y.indices, .dim = d, .values = y.values, .smallest = smallest});
  return y;
}

// y [.., 1, ..] in the form that the op returns.
Tensor without_dim(const char* op, const Tensor& y, const Tensor& x, int dim, bool keepdim) {
  if (x.dim() == 0) {
    return make_view(y, {}, {});
  }
  return keepdim ? y : drop_reduced(op, y, {dim});
}

// Marks a result that has no gradient, so that an error of backward() can give the reason.
Tensor without_gradient(const Tensor& x, const Tensor& y) {
  detail::set_untracked_bits(y, detail::untracked_from(x, detail::kPlainOp));
  return y;
}

ValuesIndices extreme_along(const Op& op, const Tensor& x_, int dim, bool smallest, bool keepdim) {
  auto [x] = op.enter(x_);
  const Along found = find_along(op.name, x, dim, smallest, true);
  const int d = found.dim;
  const Tensor values = without_dim(op.name, found.values, x, d, keepdim);
  return {record_chosen(op, x, d, values, found.indices),
          without_dim(op.name, found.indices, x, d, keepdim)};
}

Tensor index_of_all(const char* op, const Tensor& x, bool smallest) {
  check_defined(op, x);
  const Along found = find_along(op, reshape(x.detach(), {-1}), 0, smallest, false);
  return without_gradient(x, make_view(found.indices, {}, {}));
}

Tensor index_along(const char* op, const Tensor& x, int dim, bool smallest, bool keepdim) {
  const Along found = find_along(op, x, dim, smallest, false);
  return without_gradient(x, without_dim(op, found.indices, x, found.dim, keepdim));
}

Tensor truth(const char* op, Reduce kind, const Tensor& x_, const Dims& dims, bool keepdim) {
  check_defined(op, x_);
  const Tensor x = cast(x_.detach(), DType::boolean);
  const Dims kept = kept_sizes(op, x, dims);
  Tensor y = empty(kept, DType::boolean, x.device());
  if (x.numel() > 0) {
    kernels::reduce_forward({.op = kind, .x = x, .y = y});
  } else {
    y.fill_(kind == Reduce::min ? 1 : 0);
  }
  return without_gradient(x_, finish_reduction(op, x, y, dims, keepdim));
}

}  // namespace
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"sum", OpClass::reduction, true};
  return reduce(kOp, Reduce::sum, x, dims, keepdim);
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"mean", OpClass::reduction, true};
  return reduce(kOp, Reduce::mean, x, dims, keepdim);
}

Tensor nansum(const Tensor& x, const Dims& dims, bool keepdim) {
  check_defined("nansum", x);
  static_cast<void>(kept_sizes("nansum", x, dims));  // names the op
  return sum(is_floating(x.dtype()) ? masked_fill(x, isnan(x), 0) : x, dims, keepdim);
}

Tensor nanmean(const Tensor& x_, const Dims& dims, bool keepdim) {
  static constexpr Op kMean{"mean", OpClass::reduction, true};  // has its dtypes under a policy
  check_floating("nanmean", x_);
  static_cast<void>(kept_sizes("nanmean", x_, dims));
  auto [x] = kMean.enter(x_);
  const PrecisionScope full(Precision::full());
  const DType wide = compute_dtype(x.dtype());  // a sum in f16 would overflow before the division
  const Tensor none = isnan(x);
  const Tensor total = sum(masked_fill(cast(x, wide), none, 0), dims, keepdim);
  const Tensor count = sum(logical_not(none), dims, keepdim);
  return cast(div(total, cast(count, wide)), x.dtype());
}

Tensor sum_to(const Tensor& g, const Dims& sizes, const Tensor& out) {
  static constexpr Op kOp{"sum_to", OpClass::reduction, true};
  check_floating("sum_to", g);
  const int lead = g.dim() - sizes.size();
  check(lead >= 0 && broadcast_sizes("sum_to", g.sizes(), sizes) == g.sizes(), "sum_to: got shape ",
        g.sizes(), ", expected one that ", sizes, " broadcasts to");
  Tensor y = out.defined() ? out : empty(sizes, g.dtype(), g.device());
  Dims kept = Dims::of(g.dim(), 1), strides = Dims::of(g.dim());
  for (int i = 0; i < sizes.size(); ++i) {
    kept[lead + i] = sizes[i];
    strides[lead + i] = y.strides()[i];
  }
  kernels::reduce_forward({.op = Reduce::sum, .x = g, .y = make_view(y, kept, strides)});
  return kOp.record({g}, y, save(),
                    [sizes = g.sizes()](const Tensor& dy) -> Grads { return {expand(dy, sizes)}; });
}

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"amax", OpClass::movement};
  return extreme(kOp, Reduce::max, ReduceSlope::equal_or_nan, x, dims, keepdim);
}

Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"amin", OpClass::movement};
  return extreme(kOp, Reduce::min, ReduceSlope::equal_or_nan, x, dims, keepdim);
}

Tensor max(const Tensor& x) {
  static constexpr Op kOp{"max", OpClass::movement};
  return extreme(kOp, Reduce::max, ReduceSlope::equal, x, {}, false);
}

Tensor min(const Tensor& x) {
  static constexpr Op kOp{"min", OpClass::movement};
  return extreme(kOp, Reduce::min, ReduceSlope::equal, x, {}, false);
}

ValuesIndices max(const Tensor& x, int dim, bool keepdim) {
  static constexpr Op kOp{"max", OpClass::movement, true};
  return extreme_along(kOp, x, dim, false, keepdim);
}

ValuesIndices min(const Tensor& x, int dim, bool keepdim) {
  static constexpr Op kOp{"min", OpClass::movement, true};
  return extreme_along(kOp, x, dim, true, keepdim);
}

Tensor argmax(const Tensor& x) { return index_of_all("argmax", x, false); }
Tensor argmin(const Tensor& x) { return index_of_all("argmin", x, true); }

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  return index_along("argmax", x, dim, false, keepdim);
}

Tensor argmin(const Tensor& x, int dim, bool keepdim) {
  return index_along("argmin", x, dim, true, keepdim);
}

Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  return truth("any", Reduce::max, x, dims, keepdim);
}

Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  return truth("all", Reduce::min, x, dims, keepdim);
}

}  // namespace binade
