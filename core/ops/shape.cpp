// Ops that change the shape: views if the strides allow it, else copies. Their gradients are shape
// ops too.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/shape.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/view_internal.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>

namespace binade {
namespace {

Tensor copy_of(const Tensor& x, const Dims& strides) {
  Tensor y = empty_strided(x.sizes(), strides, x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  return y;
}

// Finds strides with which x's memory, read with the new sizes, has the same elements in row-major
// order; false if there are none. Old dimensions that are contiguous in memory are joined and then
// split into the new ones.
bool view_strides(const Tensor& x, const Dims& sizes, Dims& strides) {
  strides = row_major_strides(sizes);
  if (x.is_contiguous() || x.numel() == 0) {
    return true;
  }
  int next = sizes.size() - 1;
  int64_t stride = x.strides()[x.dim() - 1], old_count = 1, new_count = 1;
  for (int i = x.dim() - 1; i >= 0; --i) {
    old_count *= x.sizes()[i];
    const bool joined =
        i > 0 && (x.sizes()[i - 1] == 1 || x.strides()[i - 1] == old_count * stride);
    if (joined) {
      continue;
    }
    while (next >= 0 && (new_count < old_count || sizes[next] == 1)) {
      strides[next] = stride * new_count;
      new_count *= sizes[next--];
    }
    if (new_count != old_count) {
      return false;
    }
    if (i > 0) {
      stride = x.strides()[i - 1];
      old_count = new_count = 1;
    }
  }
  return next < 0;
}

Dims inferred_sizes(const Tensor& x, const Dims& wanted) {
  Dims sizes = wanted;
  int unknown = -1;
  for (int i = 0; i < sizes.size(); ++i) {
    check(sizes[i] >= -1 && (sizes[i] != -1 || unknown < 0), "reshape: got sizes ", wanted,
          ", expected no negative size but one -1");
    unknown = sizes[i] == -1 ? i : unknown;
  }
  if (unknown >= 0) {
    sizes[unknown] = 1;
    const int64_t known = element_count(sizes, "reshape");
    check(known > 0, "reshape: got shape ", x.sizes(), " and sizes ", wanted,
          ", expected no 0 beside -1, which then could be any size");
    check(x.numel() % known == 0, "reshape: got shape ", x.sizes(), " and sizes ", wanted,
          ", expected sizes whose product divides ", x.numel());
    sizes[unknown] = x.numel() / known;
  }
  check(element_count(sizes, "reshape") == x.numel(), "reshape: got shape ", x.sizes(),
        " and sizes ", wanted, ", expected sizes with ", x.numel(), " elements");
  return sizes;
}

}  // namespace

Tensor reshape(const Tensor& x, const Dims& wanted) {
  static constexpr Op kOp{"reshape", OpClass::movement, true};
  check_defined("reshape", x);
  const Dims sizes = inferred_sizes(x, wanted);
  Dims strides;
  Tensor y = view_strides(x, sizes, strides) ? make_view(x, sizes, strides)
                                             : make_view(copy_of(x, row_major_strides(x.sizes())),
                                                         sizes, row_major_strides(sizes));
  return kOp.record({x}, y, save(),
                    [from = x.sizes()](const Tensor& dy) -> Grads { return {reshape(dy, from)}; });
}

Tensor flatten(const Tensor& x, int first, int last) {
  check_defined("flatten", x);
  if (x.dim() == 0) {
    return reshape(x, {1});
  }
  const int from = wrap_dim("flatten", first, x.dim()), to = wrap_dim("flatten", last, x.dim());
  check(from <= to, "flatten: got dimensions ", first, " to ", last,
        ", expected the first before the last");
  Dims sizes;
  int64_t joined = 1;
  for (int i = 0; i < x.dim(); ++i) {
    joined *= i >= from && i <= to ? x.sizes()[i] : 1;
    if (i < from || i > to) {
      sizes.push_back(x.sizes()[i]);
    } else if (i == to) {
      sizes.push_back(joined);
    }
  }
  return reshape(x, sizes);
}

Tensor permute(const Tensor& x, const Dims& order) {
  static constexpr Op kOp{"permute", OpClass::movement, true};
  check_defined("permute", x);
  check(order.size() == x.dim(), "permute: got order ", order, " for a tensor of shape ", x.sizes(),
        ", expected one entry per dimension");
  const View& old = x.handle()->view;
  Dims sizes = old.sizes, strides = old.strides, inverse = order;
  unsigned seen = 0;  // a bit per dimension
  for (int i = 0; i < order.size(); ++i) {
    const int from = wrap_dim("permute", order[i], order.size());
    check(!(seen >> from & 1), "permute: got order ", order, ", expected each dimension once");
    seen |= 1u << from;
    sizes[i] = old.sizes[from];
    strides[i] = old.strides[from];
    inverse[from] = i;
  }
  Tensor y = make_view(x, sizes, strides);
  return kOp.record({x}, y, save(),
                    [inverse](const Tensor& dy) -> Grads { return {permute(dy, inverse)}; });
}

Tensor transpose(const Tensor& x, int i, int j) {
  check_defined("transpose", x);
  Dims order;
  for (int d = 0; d < x.dim(); ++d) {
    order.push_back(d);
  }
  if (x.dim() > 0) {
    std::swap(order[wrap_dim("transpose", i, x.dim())], order[wrap_dim("transpose", j, x.dim())]);
  }
  return permute(x, order);
}

Tensor expand(const Tensor& x, const Dims& wanted) {
  static constexpr Op kOp{"expand", OpClass::movement, true};
  check_defined("expand", x);
  const int lead = wanted.size() - x.dim();
  check(lead >= 0, "expand: got shape ", x.sizes(), " and sizes ", wanted,
        ", expected at least as many sizes");
  const View& from = x.handle()->view;
  Dims sizes = wanted, strides = Dims::of(wanted.size());
  for (int i = 0; i < sizes.size(); ++i) {
    const int64_t old = i < lead ? 1 : from.sizes[i - lead];
    const int64_t size = wanted[i] == -1 && i >= lead ? old : wanted[i];
    check(size == old || (old == 1 && size >= 0), "expand: got shape ", x.sizes(), " and sizes ",
          wanted, ", expected equal sizes or 1, aligned at the last dimension");
    sizes[i] = size;
    strides[i] = i < lead || (old == 1 && size != 1) ? 0 : from.strides[i - lead];
  }
  Tensor y = detail::make_view(kOp.name, x, sizes, strides);
  // The engine sums dy down to x's sizes, as for every broadcast.
  return kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy}; });
}

namespace {

// Elements from, from + step, ... of dimension d.
struct Steps {
  int d;
  int64_t from, step;
};

// dx = dy at the elements that slice selected, 0 elsewhere.
void write_steps(const Tensor& dy, const Tensor& dx, const Steps& at) {
  kernels::fill({.y = dx, .value = 0});
  Dims strides = dx.strides();
  strides[at.d] *= at.step;
  kernels::copy({.x = dy, .y = make_view(dx, dy.sizes(), strides, at.from * dx.strides()[at.d])});
}

// The transpose of the linear map `slice`, as an op.
Tensor unslice(const Tensor& dy, const Dims& sizes, const Steps& at) {
  static constexpr Op kOp{"slice", OpClass::movement, true};
  Tensor dx = empty(sizes, dy.dtype(), dy.device());
  write_steps(dy, dx, at);
  const int64_t end = at.from + dy.sizes()[at.d] * at.step;
  return kOp.record({dy}, dx, save(), [at, end](const Tensor& ddx) -> Grads {
    return {slice(ddx, at.d, at.from, end, at.step)};
  });
}

}  // namespace

Tensor slice(const Tensor& x, int dim, int64_t start, int64_t end, int64_t step) {
  static constexpr Op kOp{"slice", OpClass::movement, true};
  check_defined("slice", x);
  check(x.dim() > 0 && step >= 1, "slice: got shape ", x.sizes(), " and step ", step,
        ", expected a dimension and a step of at least 1");
  const int d = wrap_dim("slice", dim, x.dim());
  const int64_t size = x.sizes()[d];
  step = std::min(step, std::max<int64_t>(size, 1));  // further steps see the first element only
  auto bound = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const int64_t from = bound(start), to = std::max(bound(end), from);
  Dims sizes = x.sizes(), strides = x.strides();
  sizes[d] = (to - from + step - 1) / step;
  strides[d] *= step;
  Tensor y = make_view(x, sizes, strides, from * x.strides()[d]);
  const Steps at{d, from, step};
  return kOp.record({x}, y, save(),
                    [at, sizes = x.sizes()](const Tensor& dy, Needs needs) -> Grads {
                      if (grad_enabled()) {
                        return {unslice(dy, sizes, at)};
                      }
                      Tensor dx = needs.out(0);
                      write_steps(dy, dx, at);
                      return {dx};
                    });
}

Tensor select(const Tensor& x, int dim, int64_t index) {
  check_defined("select", x);
  check(x.dim() > 0, "select: got index ", index,
        " of a scalar, expected a tensor with a dimension; item() reads the value");
  const int d = wrap_dim("select", dim, x.dim());
  const int64_t size = x.sizes()[d];
  check(size > 0, "select: got index ", index, " in dimension ", d, " of shape ", x.sizes(),
        ", expected a dimension with elements");
  check(index >= -size && index < size, "select: got index ", index, " in dimension ", d,
        " of shape ", x.sizes(), ", expected ", -size, " to ", size - 1);
  const int64_t at = index < 0 ? index + size : index;
  return squeeze(slice(x, d, at, at + 1), d);
}

Tensor narrow(const Tensor& x, int dim, int64_t start, int64_t length) {
  check_defined("narrow", x);
  check(x.dim() > 0, "narrow: got a scalar, expected a dimension");
  const int d = wrap_dim("narrow", dim, x.dim());
  const int64_t size = x.sizes()[d], from = start < 0 ? start + size : start;
  check(from >= 0 && from <= size && length >= 0 && length <= size - from, "narrow: got start ",
        start, " and length ", length, " in dimension ", d, " of shape ", x.sizes(),
        ", expected a range inside");
  return slice(x, d, from, from + length);
}

Tensor unsqueeze(const Tensor& x, int dim) {
  check_defined("unsqueeze", x);
  check(x.dim() < kMaxDims, "unsqueeze: got shape ", x.sizes(), ", expected less than ", kMaxDims,
        " dimensions");
  const int d = wrap_dim("unsqueeze", dim, x.dim() + 1);
  Dims sizes;
  for (int i = 0; i <= x.dim(); ++i) {
    if (i == d) {
      sizes.push_back(1);
    }
    if (i < x.dim()) {
      sizes.push_back(x.sizes()[i]);
    }
  }
  return reshape(x, sizes);
}

Tensor squeeze(const Tensor& x) {
  check_defined("squeeze", x);
  Dims sizes;
  for (int64_t size : x.sizes()) {
    if (size != 1) {
      sizes.push_back(size);
    }
  }
  return reshape(x, sizes);
}

Tensor squeeze(const Tensor& x, int dim) {
  check_defined("squeeze", x);
  const int d = wrap_dim("squeeze", dim, x.dim());
  Dims sizes;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != d || x.sizes()[i] != 1) {
      sizes.push_back(x.sizes()[i]);
    }
  }
  return reshape(x, sizes);
}

namespace {
Tensor in_layout(const Op& op, const Tensor& x, const Dims& strides) {
  Tensor y = copy_of(x, strides);
  return op.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy}; });
}
}  // namespace

Tensor clone(const Tensor& x) {
  static constexpr Op kOp{"clone", OpClass::movement, true};
  check_defined("clone", x);
  const bool dense = is_dense(x.sizes(), x.strides());
  return in_layout(kOp, x, dense ? x.strides() : row_major_strides(x.sizes()));
}

Tensor contiguous(const Tensor& x) {
  static constexpr Op kOp{"contiguous", OpClass::movement, true};
  check_defined("contiguous", x);
  return x.is_contiguous() ? x : in_layout(kOp, x, row_major_strides(x.sizes()));
}

Tensor channels_last(const Tensor& x) {
  static constexpr Op kOp{"channels_last", OpClass::movement, true};
  check(x.defined() && x.dim() >= 3, "channels_last: got ",
        x.defined() ? to_string(x.sizes()) : "an undefined tensor", ", expected [N, C, ...]");
  return x.is_channels_last() ? x : in_layout(kOp, x, channels_last_strides(x.sizes()));
}

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  check_defined("movedim", x);
  check(source.size() == destination.size() && source.size() <= x.dim(), "movedim: got dims ",
        source, " and ", destination, ", expected as many, and at most ", x.dim());
  Dims order = Dims::of(x.dim(), -1);
  bool moved[kMaxDims] = {};
  for (int i = 0; i < source.size(); ++i) {
    const int from = wrap_dim("movedim", source[i], x.dim()),
              to = wrap_dim("movedim", destination[i], x.dim());
    check(!moved[from] && order[to] < 0, "movedim: got dims ", source, " and ", destination,
          ", expected each dimension once");
    moved[from] = true;
    order[to] = from;
  }
  int next = 0;
  for (int d = 0; d < x.dim(); ++d) {
    if (order[d] < 0) {
      while (moved[next]) {
        ++next;
      }
      order[d] = next++;
    }
  }
  return permute(x, order);
}

}  // namespace binade
