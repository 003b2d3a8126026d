// round_to_format and accumulated_matmul: the format lab.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/accumulated_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/format_internal.h>
#include <binade/core/ops/format.h>
#include <binade/core/tensor/create.h>

namespace binade {
namespace {

Tensor tensor_scale(const Tensor& x, const FormatScheme& scheme) {
  const NoGradGuard guard;
  const double top = scheme.scaling == FormatScaling::blocks
                         ? scheme.format.max() * scheme.block_scale.max()
                         : scheme.format.max();
  return detail::positive_scale(
      mul(reshape(cast(amax(abs(x.detach())), DType::f32), {1}), 1 / top));
}

void round_in_blocks(const Tensor& x, const Tensor& y, const FormatScheme& scheme,
                     const detail::DrawnRoundings& random, const Tensor& scale) {
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
  const detail::DrawnRoundings random =
      detail::draw_roundings(scheme.rounding, static_cast<uint64_t>(x.numel()));
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
  static constexpr Op kOp{"accumulated_matmul", OpClass::movement, true};
  const std::vector<Tensor> joined = detail::enter_joined(kOp, {a_, b_});
  const Tensor &a = joined[0], &b = joined[1];
  check_floating(kOp.name, a, b);
  check(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), kOp.name, ": got a ", a.sizes(),
        " and b ", b.sizes(), ", expected [m, k] and [k, n]");
  check(sum.chunk > 0, kOp.name, ": got chunks of ", sum.chunk,
        ", expected a positive number of products");
  return detail::accumulated_product(kOp, a, b, sum);
}

}  // namespace binade
