// Ops that choose elements by their values. The elements at the true positions of a mask are
// counted first, by chunks, so that the chunks are independent; unique is a sort and a mask.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/select.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/index/masked_select.h>
#include <binade/kernels/sort/searchsorted.h>

#include <algorithm>
#include <cmath>

namespace binade {
namespace {

// The number of true elements, for which the host waits for a device, and the kernels' offsets.
struct Counted {
  Tensor offsets;
  int64_t count;
};
Counted count_of(const Tensor& mask) {
  const int64_t chunks = kernels::mask_offsets(mask.numel());
  const Tensor offsets = empty({chunks}, DType::i64, mask.device());
  kernels::mask_count({.mask = mask, .offsets = offsets});
  return {offsets, static_cast<int64_t>(offsets.at(chunks - 1))};
}

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
  check(x.defined() && mask.defined(),
        "masked_select: got an undefined tensor, expected one with a value; assign it first");
  check(mask.dtype() == DType::boolean && mask.sizes() == x.sizes(), "masked_select: got a mask ",
        mask.dtype(), " ", mask.sizes(), " for shape ", x.sizes(),
        ", expected bool of the same shape; use expand()");
  check_one_device("masked_select", {&x, &mask});
  const Counted counted = count_of(mask);
  return select(x, mask, counted.offsets, counted.count);
}

Tensor masked_scatter(const Tensor& x_, const Tensor& mask, const Tensor& src_) {
  check(x_.defined() && mask.defined() && src_.defined(),
        "masked_scatter: got an undefined tensor, expected one with a value; assign it first");
  check_one_device("masked_scatter", {&x_, &mask, &src_});
  const std::vector<Tensor> joined = detail::enter_joined(kMaskedSelect, {x_, src_});
  const Tensor &x = joined[0], &src = joined[1];
  check(mask.dtype() == DType::boolean && mask.sizes() == x.sizes() && src.dtype() == x.dtype(),
        "masked_scatter: got x ", x.dtype(), " ", x.sizes(), ", a mask ", mask.dtype(), " ",
        mask.sizes(), " and src ", src.dtype(),
        ", expected a bool mask of x's shape and src of x's dtype; use expand()");
  const Counted counted = count_of(mask);
  check(src.numel() >= counted.count, "masked_scatter: got ", src.numel(), " elements for ",
        counted.count, " true elements of the mask, expected at least as many");
  const Tensor terms = slice(reshape(src, {-1}), 0, 0, counted.count);
  return where(mask, spread(terms, mask, counted.offsets), x);
}

Tensor nonzero(const Tensor& x) {
  check_defined("nonzero", x);
  const Tensor mask = cast(x.detach(), DType::boolean);
  const Counted counted = count_of(mask);
  Tensor y = empty({counted.count, x.dim()}, DType::i64, x.device());
  kernels::mask_positions({.mask = mask, .offsets = counted.offsets, .y = y});
  return y;
}

UniqueResult unique(const Tensor& x) {
  check_defined("unique", x);
  const NoGradGuard guard;
  const int64_t n = x.numel();
  const auto [sorted, order] = sort(reshape(x.detach(), {n}), 0);
  if (n == 0) {
    const Tensor none = empty({0}, DType::i64, x.device());
    return {sorted, reshape(none, x.sizes()), none};
  }
  const Tensor changes = ne(slice(sorted, 0, 1, n), slice(sorted, 0, 0, n - 1));
  const auto after = [&](double first) {
    return cat({full({1}, first, DType::boolean, x.device()), changes});
  };
  const Tensor group = cumsum(cast(after(0), DType::i64), 0);
  const Tensor values = masked_select(sorted, after(1));
  Tensor inverse = empty({n}, DType::i64, x.device());
  kernels::scatter(
      {.op = "unique", .index = order, .src = group, .y = inverse, .dim = 0, .distinct = true});
  const Tensor counts = scatter_add(zeros(values.sizes(), DType::i64, x.device()), 0, group,
                                    full({n}, 1, DType::i64, x.device()));
  return {values, reshape(inverse, x.sizes()), counts};
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  check_defined("bincount", x);
  check(x.dtype() == DType::i64 && x.dim() == 1 && minlength >= 0, "bincount: got ", x.dtype(), " ",
        x.sizes(), " and minlength ", minlength,
        ", expected i64 of one dimension and a length of at least 0");
  check_one_device("bincount", {&x, &weights});
  check(!weights.defined() || weights.sizes() == x.sizes(), "bincount: got numbers of shape ",
        x.sizes(), " and weights of another shape, expected one weight per number");
  check(!weights.defined() || is_floating(weights.dtype()) || weights.dtype() == DType::i64 ||
            weights.dtype() == DType::i32,
        "bincount: got weights of dtype ", weights.defined() ? weights.dtype() : x.dtype(),
        ", expected a floating dtype, i64 or i32; convert with to()");
  int64_t size = minlength;
  if (x.numel() > 0) {
    const int64_t least = min(x).to_vector<int64_t>().front();
    check(least >= 0, "bincount: got the number ", least, ", expected 0 or more");
    const int64_t largest = max(x).to_vector<int64_t>().front();
    size = std::max(size, element_count({largest}, "bincount") + 1);
  }
  static_cast<void>(element_count({size}, "bincount"));
  const Tensor terms = weights.defined() ? weights : full(x.sizes(), 1, DType::i64, x.device());
  return scatter_add(zeros({size}, terms.dtype(), x.device()), 0, x, terms);
}

namespace {

// The places of values in a sequence [n], or of values [.., m] in sequences [.., n].
Tensor places(const Op& op, const Tensor& sequence_, const Tensor& values_, bool right) {
  check_one_device(op.name, {&sequence_, &values_});
  auto [sequence, values] = op.enter_promoted(sequence_, values_);
  const auto batch = [](const Tensor& x) {
    return Dims(std::span(x.sizes().begin(), static_cast<size_t>(x.dim() - 1)));
  };
  const bool single = sequence.dim() == 1;
  check(single || (sequence.dim() > 1 && values.dim() == sequence.dim() &&
                   batch(values) == batch(sequence)),
        op.name, ": got a sorted sequence of shape ", sequence.sizes(), " and values of shape ",
        values.sizes(),
        ", expected one dimension, or sizes that differ in the last dimension only");
  Tensor y = empty(values.sizes(), DType::i64, values.device());
  if (y.numel() > 0) {
    const int64_t m = single ? y.numel() : values.size(-1), count = y.numel() / m;
    const auto as_rows = [](const Tensor& x, int64_t rows, int64_t columns) {
      return make_view(contiguous(x.detach()), {rows, columns}, {columns, 1});
    };
    kernels::searchsorted({.sequence = as_rows(sequence, count, sequence.size(-1)),
                           .values = as_rows(values, count, m),
                           .y = as_rows(y, count, m),
                           .right = right});
  }
  return op.plain({sequence, values}, y);
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool right) {
  static constexpr Op kOp{"searchsorted", OpClass::pointwise};
  return places(kOp, sorted_sequence, values, right);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
  static constexpr Op kOp{"bucketize", OpClass::pointwise};
  check_defined(kOp.name, boundaries);
  check(boundaries.dim() == 1, "bucketize: got boundaries of shape ", boundaries.sizes(),
        ", expected one dimension; searchsorted takes a sequence for each row");
  return places(kOp, boundaries, x, right);
}

namespace {

// The range of a histogram and the dtype in which its bins are computed: elements times `scale` are
// compared with low and high.
struct HistogramRange {
  DType dtype;
  double low, high, scale = 1;
};

HistogramRange histogram_range(const Tensor& x, int64_t bins, double low, double high) {
  HistogramRange range = {compute_dtype(x.dtype()), low, high};
  if (range.dtype == DType::f32) {  // as the elements, so that bounds that round to one are equal
    range.low = static_cast<float>(low);
    range.high = static_cast<float>(high);
  }
  if (range.low == range.high && x.numel() > 0) {
    range.low = min(x).item();
    range.high = max(x).item();
  }
  check(std::isfinite(range.low) && std::isfinite(range.high) && range.low <= range.high,
        "histc: got the range ", range.low, " to ", range.high,
        ", expected finite bounds in ascending order; clean x with nan_to_num()");
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  if (bins >= (int64_t{1} << 24) || largest * static_cast<double>(bins) > 0x1p126) {
    range.dtype = DType::f64;  // f32 holds neither the numbers of the bins nor the products
  }
  if (largest > 0x1p900) {
    range.scale = 0x1p-100;
    range.low *= range.scale;
    range.high *= range.scale;
  }
  if (range.low == range.high) {  // 1 on each side, or more where adding 1 changes nothing
    const double side =
        range.low == 0 ? 1 : std::max(1.0, std::ldexp(1.0, std::ilogb(range.low) - 20));
    range.low -= side;
    range.high += side;
  }
  return range;
}

}  // namespace

Tensor histc(const Tensor& x, int64_t bins, double min, double max) {
  check_floating("histc", x);
  check(bins > 0, "histc: got ", bins, " bins, expected at least 1");
  static_cast<void>(element_count({bins}, "histc"));
  const NoGradGuard guard;
  const PrecisionScope no_policy(Precision::full());
  const Tensor flat = reshape(x.detach(), {-1});
  const HistogramRange range = histogram_range(flat, bins, min, max);
  Tensor values = cast(flat, range.dtype);
  if (range.scale != 1) {
    values = mul(values, range.scale);
  }
  const Tensor inside = logical_and(ge(values, range.low), le(values, range.high));
  const auto last = static_cast<double>(bins - 1);
  Tensor bin = div(mul(add(values, -range.low), last + 1), range.high - range.low);
  bin = where(inside, clamp(floor(bin), 0, last), last + 1);  // one more, for those outside
  const Tensor ones = full({values.numel()}, 1, DType::i64, x.device());
  const Tensor counts =
      scatter_add(zeros({bins + 1}, DType::i64, x.device()), 0, cast(bin, DType::i64), ones);
  return cast(slice(counts, 0, 0, bins), compute_dtype(x.dtype()));
}

Tensor one_hot(const Tensor& index, int64_t classes) {
  check_defined("one_hot", index);
  check(index.dtype() == DType::i64, "one_hot: got an index of dtype ", index.dtype(),
        ", expected i64; convert it with to()");
  check(classes >= 1 || classes == -1, "one_hot: got ", classes,
        " classes, expected at least 1, or -1 for what the indices need");
  if (classes == -1) {
    check(index.numel() > 0, "one_hot: got no index, expected a number of classes");
    const Tensor host = contiguous(index.to(Device{}));
    const int64_t* values = host.data<int64_t>();
    const int64_t largest = *std::max_element(values, values + host.numel());
    check(largest >= 0, "one_hot: got negative indices, expected 0 or more");
    classes = element_count({largest}, "one_hot") + 1;
  }
  Dims sizes = index.sizes();
  sizes.push_back(classes);
  static_cast<void>(element_count(sizes, "one_hot"));
  Tensor y = empty(sizes, DType::i64, index.device());
  kernels::one_hot({.index = index, .y = y});
  return y;
}

}  // namespace binade
