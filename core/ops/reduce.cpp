// sum, mean and sum_to, and the functions that all reductions share.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/reduced_internal.h>
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

using detail::drop_reduced;
using detail::kept_sizes;
using kernels::Reduce;

// Sum and mean. The gradient broadcasts dy over the reduced elements.
Tensor reduce(const Op& op, Reduce kind, const Tensor& x_, const Dims& dims, bool keepdim) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  const bool floating = is_floating(x.dtype());
  check(floating || kind == Reduce::sum, op.name, ": got dtype ", x.dtype(),
        ", expected a floating dtype; convert with to()");
  const Dims kept = kept_sizes(op.name, x, dims);
  Tensor full = empty(kept, floating ? x.dtype() : DType::i64, x.device());
  kernels::reduce_forward({.op = kind, .x = x, .y = full});
  Tensor y = keepdim ? full : drop_reduced(op.name, full, dims);
  const double count =
      kind == Reduce::mean ? static_cast<double>(x.numel()) / static_cast<double>(full.numel()) : 1;
  return op.record({x}, y, save(), [kept, sizes = x.sizes(), count](const Tensor& dy) -> Grads {
    Tensor spread = reshape(dy, kept);
    return {expand(count == 1 ? spread : div(spread, count), sizes)};
  });
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

}  // namespace binade
