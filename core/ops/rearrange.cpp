// flip, roll and pad copy boxes: ranges of each dimension, forwards or mirrored. Their gradients
// are the same ops, with the shifts or pads negated. repeat and tile are views and one copy.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/rearrange.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/copy/triangle.h>

#include <algorithm>
#include <functional>

namespace binade {
namespace {

// A range of one dimension: element i of it is y's `to + i` and x's `from + i` (or `from - i`).
struct Range {
  int64_t from, to, length;
  bool mirrored = false;
};
using Ranges = std::vector<Range>;  // of one dimension

Tensor box(const Tensor& t, const std::vector<Range>& ranges, bool source) {
  Dims sizes, strides;
  int64_t offset = 0;
  for (int d = 0; d < t.dim(); ++d) {
    const Range& range = ranges[static_cast<size_t>(d)];
    sizes.push_back(range.length);
    strides.push_back(source && range.mirrored ? -t.strides()[d] : t.strides()[d]);
    offset += (source ? range.from : range.to) * t.strides()[d];
  }
  return make_view(t, sizes, strides, offset);
}

// Calls f(box of x, box of y) for every combination of a range of each dimension, in a fixed order.
void for_each_box(const Tensor& x, const Tensor& y, const std::vector<Ranges>& dims,
                  const std::function<void(const Tensor&, const Tensor&)>& f) {
  std::vector<size_t> choice(dims.size(), 0);
  while (true) {
    std::vector<Range> ranges;
    bool empty = false;
    for (size_t d = 0; d < dims.size(); ++d) {
      ranges.push_back(dims[d][choice[d]]);
      empty |= ranges.back().length == 0;
    }
    if (!empty) {
      f(box(x, ranges, true), box(y, ranges, false));
    }
    size_t d = 0;
    for (; d < dims.size() && ++choice[d] == dims[d].size(); ++d) {
      choice[d] = 0;
    }
    if (d == dims.size()) {
      return;
    }
  }
}

void copy_boxes(const Tensor& x, const Tensor& y, const std::vector<Ranges>& dims) {
  for_each_box(x, y, dims,
               [](const Tensor& from, const Tensor& to) { kernels::copy({.x = from, .y = to}); });
}

std::vector<Ranges> whole(const Tensor& x) {
  std::vector<Ranges> dims;
  for (int64_t size : x.sizes()) {
    dims.push_back({{0, 0, size}});
  }
  return dims;
}

// pad -------------------------------------------------------------------------------------------

struct Pads {
  Dims before, after;  // of each dimension
};

Pads pads_of(const Tensor& x, const std::vector<int64_t>& list) {
  check(list.size() % 2 == 0 && list.size() <= 2 * static_cast<size_t>(x.dim()), "pad: got ",
        list.size(), " numbers for a tensor of shape ", x.sizes(),
        ", expected two for each of the last dimensions");
  Pads pads{Dims::of(x.dim()), Dims::of(x.dim())};
  for (size_t i = 0; i < list.size(); i += 2) {
    const int d = x.dim() - 1 - static_cast<int>(i / 2);
    pads.before[d] = list[i];
    pads.after[d] = list[i + 1];
  }
  return pads;
}

Dims padded_sizes(const Tensor& x, const Pads& pads) {
  Dims sizes = x.sizes();
  for (int d = 0; d < x.dim(); ++d) {
    constexpr int64_t kMost = int64_t{1} << 60;
    const int64_t before = pads.before[d], after = pads.after[d];
    check(std::max(before, after) < kMost && std::min(before, after) > -kMost &&
              sizes[d] + before + after >= 0,
          "pad: got pads ", before, " and ", after, " in dimension ", d, " of shape ", x.sizes(),
          ", expected a result of size 0 or more");
    sizes[d] += before + after;
  }
  return sizes;
}

// Fills the elements of y outside the ranges, each element once.
void fill_borders(const Tensor& y, const std::vector<Ranges>& inner, double value) {
  Dims sizes = y.sizes();
  int64_t offset = 0;
  for (int d = 0; d < y.dim(); ++d) {
    const Range& range = inner[static_cast<size_t>(d)][0];
    const int64_t end = range.to + range.length;
    for (const auto& [first, length] :
         {std::pair(int64_t{0}, range.to), std::pair(end, y.sizes()[d] - end)}) {
      sizes[d] = length;
      if (element_count(sizes) > 0) {
        kernels::fill({.y = make_view(y, sizes, y.strides(), offset + first * y.strides()[d]),
                       .value = value});
      }
    }
    sizes[d] = range.length;
    offset += range.to * y.strides()[d];
  }
}

Tensor pad_constant(const Tensor& x, const Pads& pads, double value) {
  static constexpr Op kOp{"pad", OpClass::movement, true};
  detail::begin_op(kOp);
  Tensor y = empty(padded_sizes(x, pads), x.dtype(), x.device());
  std::vector<Ranges> inner;
  for (int d = 0; d < x.dim(); ++d) {
    const int64_t cut = std::max<int64_t>(-pads.before[d], 0);
    const int64_t kept = x.sizes()[d] - cut - std::max<int64_t>(-pads.after[d], 0);
    inner.push_back({{cut, std::max<int64_t>(pads.before[d], 0), std::max<int64_t>(kept, 0)}});
    inner.back()[0].to = std::min(inner.back()[0].to, y.sizes()[d]);
  }
  fill_borders(y, inner, value);
  copy_boxes(x, y, inner);
  return kOp.record({x}, y, save(), [pads](const Tensor& dy) -> Grads {
    Pads back = pads;
    for (int d = 0; d < back.before.size(); ++d) {
      back.before[d] = -back.before[d];
      back.after[d] = -back.after[d];
    }
    return {pad_constant(dy, back, 0)};
  });
}

// Ranges of a reflected copy of x; the first one of each dimension is x itself.
std::vector<Ranges> reflections(const Dims& sizes, const Pads& pads) {
  std::vector<Ranges> dims;
  for (int d = 0; d < sizes.size(); ++d) {
    const int64_t n = sizes[d], before = pads.before[d], after = pads.after[d];
    dims.push_back({{0, before, n}, {before, 0, before, true}, {n - 2, before + n, after, true}});
  }
  return dims;
}

Tensor reflect(const Tensor& x, const Pads& pads);

// The transpose of the linear map `reflect`: sums over all copies of each element of x.
Tensor reflect_back(const Tensor& dy, const Dims& sizes, const Pads& pads) {
  static constexpr Op kOp{"pad", OpClass::movement, true};
  detail::begin_op(kOp);
  Tensor dx = empty(sizes, dy.dtype(), dy.device());
  bool first = true;
  for_each_box(dx, dy, reflections(sizes, pads), [&](const Tensor& to, const Tensor& from) {
    if (std::exchange(first, false)) {
      kernels::copy({.x = from, .y = to});
    } else {
      kernels::add_into({.x = from, .y = to});
    }
  });
  return kOp.record({dy}, dx, save(),
                    [pads](const Tensor& ddx) -> Grads { return {reflect(ddx, pads)}; });
}

Tensor reflect(const Tensor& x, const Pads& pads) {
  static constexpr Op kOp{"pad", OpClass::movement, true};
  detail::begin_op(kOp);
  Tensor y = empty(padded_sizes(x, pads), x.dtype(), x.device());
  copy_boxes(x, y, reflections(x.sizes(), pads));
  return kOp.record({x}, y, save(), [sizes = x.sizes(), pads](const Tensor& dy) -> Grads {
    return {reflect_back(dy, sizes, pads)};
  });
}

// repeat, tril and triu --------------------------------------------------------------------------

// x as [outer, size, inner] around dimension d, repeated n times there.
Tensor repeat_dim(const Tensor& x, int d, int64_t n) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.dim(); ++i) {
    outer *= i < d ? x.sizes()[i] : 1;
    inner *= i > d ? x.sizes()[i] : 1;
  }
  const int64_t size = x.sizes()[d];
  Dims sizes = x.sizes();
  sizes[d] = element_count({size, n}, "repeat");
  return reshape(expand(reshape(x, {outer, 1, size, inner}), {outer, n, size, inner}), sizes);
}

Tensor triangle(const Op& op, const Tensor& x, int64_t diagonal, bool upper) {
  check_defined(op.name, x);
  check(x.dim() >= 2, op.name, ": got shape ", x.sizes(), ", expected [..., rows, columns]");
  Tensor y = empty_like(x);
  kernels::triangle({.x = x, .y = y, .diagonal = diagonal, .upper = upper});
  return op.record({x}, y, save(), [diagonal, upper](const Tensor& dy) -> Grads {
    return {upper ? triu(dy, diagonal) : tril(dy, diagonal)};
  });
}

}  // namespace

Tensor flip(const Tensor& x, const Dims& dims) {
  static constexpr Op kOp{"flip", OpClass::movement, true};
  detail::begin_op(kOp);
  check_defined("flip", x);
  std::vector<Ranges> ranges = whole(x);
  bool seen[kMaxDims] = {};
  for (int64_t dim : dims) {
    const int d = wrap_dim("flip", dim, x.dim());
    check(!seen[d], "flip: got dims ", dims, ", expected each dimension once");
    seen[d] = true;
    if (x.dim() > 0) {
      Range& range = ranges[static_cast<size_t>(d)][0];
      range.mirrored = true;
      range.from = std::max<int64_t>(range.length - 1, 0);
    }
  }
  Tensor y = empty_like(x);
  copy_boxes(x, y, ranges);
  return kOp.record({x}, y, save(), [dims](const Tensor& dy) -> Grads { return {flip(dy, dims)}; });
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  static constexpr Op kOp{"roll", OpClass::movement, true};
  detail::begin_op(kOp);
  check_defined("roll", x);
  if (dims.empty() && shifts.size() == 1) {
    return reshape(roll(reshape(x, {x.numel()}), shifts, {0}), x.sizes());
  }
  check(shifts.size() == dims.size() && !dims.empty(), "roll: got shifts ", shifts, " and dims ",
        dims, ", expected one shift per dim");
  check(x.dim() > 0, "roll: got dims ", dims, " for a 0-d tensor, expected no dims");
  Dims total = Dims::of(x.dim()), back = shifts;
  for (int i = 0; i < dims.size(); ++i) {
    const int d = wrap_dim("roll", dims[i], x.dim());
    const int64_t n = x.dim() > 0 ? std::max<int64_t>(x.sizes()[d], 1) : 1;
    back[i] = -(shifts[i] % n);
    if (x.dim() > 0) {
      total[d] = ((total[d] + shifts[i] % n) % n + n) % n;
    }
  }
  std::vector<Ranges> ranges = whole(x);
  for (int d = 0; d < x.dim(); ++d) {
    const int64_t shift = total[d], n = x.sizes()[d];
    if (shift > 0) {
      ranges[static_cast<size_t>(d)] = {{0, shift, n - shift}, {n - shift, 0, shift}};
    }
  }
  Tensor y = empty_like(x);
  copy_boxes(x, y, ranges);
  return kOp.record({x}, y, save(),
                    [back, dims](const Tensor& dy) -> Grads { return {roll(dy, back, dims)}; });
}

Tensor pad(const Tensor& x, const std::vector<int64_t>& list, const PadOptions& options) {
  check_defined("pad", x);
  const Pads pads = pads_of(x, list);
  if (options.mode == PadMode::constant) {
    return pad_constant(x, pads, options.value);
  }
  for (int d = 0; d < x.dim(); ++d) {
    const int64_t before = pads.before[d], after = pads.after[d];
    check((before == 0 && after == 0) ||
              (std::min(before, after) >= 0 && std::max(before, after) < x.sizes()[d]),
          "pad: got pads ", before, " and ", after, " in dimension ", d, " of shape ", x.sizes(),
          ", expected 0 or more and less than the size, which is as far as a reflection goes");
  }
  return reflect(x, pads);
}

Tensor repeat(const Tensor& x, const Dims& repeats) {
  check_defined("repeat", x);
  check(repeats.size() >= x.dim(), "repeat: got repeats ", repeats, " for shape ", x.sizes(),
        ", expected one or more for each dimension");
  const int rank = repeats.size(), lead = rank - x.dim();
  Dims from = Dims::of(rank, 1), pairs, expanded, sizes;
  for (int d = 0; d < rank; ++d) {
    check(repeats[d] >= 0, "repeat: got repeats ", repeats, ", expected numbers of at least 0");
    from[d] = d < lead ? 1 : x.sizes()[d - lead];
    sizes.push_back(element_count({from[d], repeats[d]}, "repeat"));
  }
  Tensor y = reshape(x, from);
  if (2 * rank <= kMaxDims) {
    for (int d = 0; d < rank; ++d) {
      pairs.push_back(1);
      pairs.push_back(from[d]);
      expanded.push_back(repeats[d]);
      expanded.push_back(from[d]);
    }
    return contiguous(reshape(expand(reshape(y, pairs), expanded), sizes));
  }
  for (int d = rank - 1; d >= 0; --d) {
    y = repeats[d] == 1 ? y : repeat_dim(y, d, repeats[d]);
  }
  return contiguous(y);
}

Tensor tile(const Tensor& x, const Dims& repeats) {
  check_defined("tile", x);
  Dims all;
  for (int d = repeats.size(); d < x.dim(); ++d) {
    all.push_back(1);
  }
  for (int64_t n : repeats) {
    check(n >= 0, "tile: got repeats ", repeats, ", expected numbers of at least 0");
    all.push_back(element_count({n}, "tile"));
  }
  return repeat(x, all);
}

Tensor tril(const Tensor& x, int64_t diagonal) {
  static constexpr Op kOp{"tril", OpClass::movement, true};
  detail::begin_op(kOp);
  return triangle(kOp, x, diagonal, false);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  static constexpr Op kOp{"triu", OpClass::movement, true};
  detail::begin_op(kOp);
  return triangle(kOp, x, diagonal, true);
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int> dim) {
  check_defined("repeat_interleave", x);
  check(repeats >= 0, "repeat_interleave: got ", repeats, " repeats, expected 0 or more");
  if (!dim || x.dim() == 0) {
    wrap_dim("repeat_interleave", dim.value_or(0), x.dim());
    return reshape(expand(reshape(x, {x.numel(), 1}), {x.numel(), repeats}),
                   {element_count({x.numel(), repeats}, "repeat_interleave")});
  }
  const int d = wrap_dim("repeat_interleave", *dim, x.dim());
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.dim(); ++i) {
    outer *= i < d ? x.sizes()[i] : 1;
    inner *= i > d ? x.sizes()[i] : 1;
  }
  Dims sizes = x.sizes();
  sizes[d] = element_count({sizes[d], repeats}, "repeat_interleave");
  const int64_t lines = outer * x.sizes()[d];
  return reshape(expand(reshape(x, {lines, 1, inner}), {lines, repeats, inner}), sizes);
}

Tensor repeat_interleave(const Tensor& x_, const Tensor& repeats, std::optional<int> dim) {
  check_defined("repeat_interleave", x_);
  const Tensor x = dim && x_.dim() > 0 ? x_ : reshape(x_, {-1});
  const int d = wrap_dim("repeat_interleave", dim.value_or(0), x.dim());
  check(repeats.defined() && repeats.dtype() == DType::i64 && repeats.sizes() == Dims{x.size(d)},
        "repeat_interleave: got repeats that are not i64 [", x.size(d),
        "], expected one number for each index of the dimension");
  check(repeats.device() == x.device(), "repeat_interleave: got a tensor on ", x.device(),
        " and repeats on ", repeats.device(), ", expected one device; move them with to()");
  if (x.size(d) == 0) {
    return slice(x, d, 0, 0);
  }
  int64_t total = 0;
  for (const int64_t count : repeats.to_vector<int64_t>()) {
    check(count >= 0, "repeat_interleave: got ", count, " repeats, expected 0 or more");
    total += element_count({count}, "repeat_interleave");
    element_count({total}, "repeat_interleave");
  }
  // Copy i of the result comes from the index that as many sums of repeats do not exceed.
  const Tensor ends = cumsum(repeats, 0);
  const Tensor ending = scatter_add(zeros({total + 1}, DType::i64, x.device()), 0, ends,
                                    full(ends.sizes(), 1, DType::i64, x.device()));
  return index_select(x, d, slice(cumsum(ending, 0), 0, 0, total));
}

}  // namespace binade
