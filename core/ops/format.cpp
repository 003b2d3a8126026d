// round_to_format and accumulated_matmul: the format lab.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/format_internal.h>
#include <binade/core/ops/format.h>
#include <binade/core/tensor/create.h>

namespace binade {
namespace {

struct DrawnRoundings {
  uint64_t seed = 0, offset = 0;
  Tensor advance = {};
};

// Random numbers for `count` roundings; none are taken where none are needed.
DrawnRoundings draw_roundings(Rounding rounding, uint64_t count) {
  if (rounding != Rounding::stochastic) {
    return {};
  }
  Generator& source = generator();
  return {source.seed, source.take(count), source.advance};
}

Tensor tensor_scale(const Tensor& x, const FormatScheme& scheme) {
  const NoGradGuard guard;
  const double top = scheme.scaling == FormatScaling::blocks
                         ? scheme.format.max() * scheme.block_scale.max()
                         : scheme.format.max();
  return detail::positive_scale(
      mul(reshape(cast(amax(abs(x.detach())), DType::f32), {1}), 1 / top));
}

// Accumulation as plain values.
struct SumRule {
  kernels::FormatGrid grid;
  Rounding rounding;
  kernels::SumOrder order;
  int64_t chunk;
};

// y = a b; y is row-major.
void accumulate_products(const Tensor& a, const Tensor& b, const Tensor& y, const SumRule& rule) {
  const Tensor left = contiguous(a.detach()), right = contiguous(b.detach());
  constexpr uint64_t kRoundings = 8;  // of a product at most (kernels/formats/formats.h)
  const auto terms = static_cast<uint64_t>(y.numel()) * static_cast<uint64_t>(left.size(1));
  const DrawnRoundings random = draw_roundings(rule.rounding, kRoundings * terms);
  kernels::accumulate_matmul({.a = left,
                              .b = right,
                              .y = y,
                              .grid = rule.grid,
                              .rounding = rule.rounding,
                              .order = rule.order,
                              .chunk = rule.chunk,
                              .seed = random.seed,
                              .offset = random.offset,
                              .advance = random.advance});
}

void round_in_blocks(const Tensor& x, const Tensor& y, const FormatScheme& scheme,
                     const DrawnRoundings& random, const Tensor& scale) {
  const int axis = x.dim() == 0 ? 0 : wrap_dim("round_to_format", scheme.axis, x.dim());
  int64_t inner = 1;
  for (int i = axis + 1; i < x.dim(); ++i) {
    inner *= x.size(i);
  }
  kernels::round_blocks({.x = x,
                         .y = y,
                         .length = x.dim() == 0 ? 1 : x.size(axis),
                         .inner = inner,
                         .block = scheme.block,
                         .grid = scheme.format.grid(),
                         .scales = scheme.block_scale.grid(),
                         .rule = scheme.block_rule,
                         .rounding = scheme.rounding,
                         .seed = random.seed,
                         .offset = random.offset,
                         .advance = random.advance,
                         .scale = scale});
}

}  // namespace

Tensor detail::positive_scale(const Tensor& scale) {
  constexpr double kLeast = 0x1p-126;  // below, x / scale could overflow
  return where(logical_and(ge(scale, kLeast), isfinite(scale)), scale, 1.0);
}

Tensor round_to_format(const Tensor& x_, const FormatScheme& scheme, const Tensor& scale_) {
  static constexpr Op kOp{"round_to_format", OpClass::movement, true};
  auto [x] = kOp.enter(x_);
  check_floating(kOp.name, x);
  check(scheme.scaling != FormatScaling::delayed || scale_.defined(), kOp.name,
        ": got a delayed scale without its value, expected the scale as third argument, or a model "
        "with simulated formats, which keeps the history");
  check(scheme.block > 0, kOp.name, ": got blocks of ", scheme.block,
        ", expected a positive number of elements");
  check(!scale_.defined() || scale_.device() == x.device(), kOp.name, ": got x on ", x.device(),
        " and a scale on ", scale_.defined() ? scale_.device() : Device{}, ", expected one device");
  const Tensor source = contiguous(x.detach());
  const bool blocks = scheme.scaling == FormatScaling::blocks;
  const bool measures = scheme.scaling == FormatScaling::tensor ||
                        (blocks && scheme.block_rule == kernels::BlockScale::nearest);
  const Tensor scale =
      scale_.defined() || !measures || x.numel() == 0 ? scale_ : tensor_scale(source, scheme);
  const DrawnRoundings random = draw_roundings(scheme.rounding, static_cast<uint64_t>(x.numel()));
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  if (blocks) {
    round_in_blocks(source, y, scheme, random, scale);
  } else {
    kernels::round_to_format({.x = source,
                              .y = y,
                              .grid = scheme.format.grid(),
                              .rounding = scheme.rounding,
                              .seed = random.seed,
                              .offset = random.offset,
                              .advance = random.advance,
                              .scale = scale});
  }
  return kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor accumulated_matmul(const Tensor& a_, const Tensor& b_, const Accumulation& sum) {
  static constexpr Op kOp{"accumulated_matmul", OpClass::movement};
  const std::vector<Tensor> joined = detail::enter_joined(kOp, {a_, b_});
  const Tensor &a = joined[0], &b = joined[1];
  check_floating(kOp.name, a, b);
  check(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), kOp.name, ": got a ", a.sizes(),
        " and b ", b.sizes(), ", expected [m, k] and [k, n]");
  check(sum.chunk > 0, kOp.name, ": got chunks of ", sum.chunk,
        ", expected a positive number of products");
  const SumRule rule{sum.format.grid(), sum.rounding, sum.order, sum.chunk};
  Tensor y = empty({a.size(0), b.size(1)}, a.dtype(), a.device());
  accumulate_products(a, b, y, rule);
  return kOp.record(
      {a, b}, y, save(a, b),
      [rule](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
        Tensor da = needs.out(0), db = needs.out(1);
        if (da.defined()) {  // dy b^T
          accumulate_products(dy, transpose(b, 0, 1), da, rule);
        }
        if (db.defined()) {  // a^T dy
          accumulate_products(transpose(a, 0, 1), dy, db, rule);
        }
        return {da, db};
      });
}

}  // namespace binade
