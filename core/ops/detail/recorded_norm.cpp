#include <binade/core/ops.h>
#include <binade/core/ops/detail/recorded_norm_internal.h>

namespace binade::detail {

Grads recorded_norm_gradients(const Tensor& x_, const Tensor& w, const Tensor& dy_, Needs needs,
                              const NormedView& norm) {
  const DType compute = compute_dtype(x_.dtype());
  const Tensor x = reshape(cast(x_, compute), norm.view),
               dy = reshape(cast(dy_, compute), norm.view);
  const auto over = [&](const Tensor& t) { return mean(t, norm.dims, true); };
  const Tensor d = norm.centred ? sub(x, over(x)) : x;
  const Tensor rstd = rsqrt(add(over(square(d)), norm.eps)), normed = mul(d, rstd);
  Tensor dx, dw, db;
  if (needs[0]) {
    // With g = dy w: dx = rstd (g - mean(g) - normed mean(g normed))
    const Tensor g = w.defined() ? mul(dy, reshape(cast(w, compute), norm.weight)) : dy;
    const Tensor rest = sub(g, mul(normed, over(mul(g, normed))));
    dx = mul(rstd, norm.centred ? sub(rest, over(g)) : rest);
    dx = reshape(cast(dx, x_.dtype()), x_.sizes());
  }
  if (needs[1]) {
    dw = cast(reshape(sum_to(mul(dy, normed), norm.weight), w.sizes()), w.dtype());
  }
  if (needs.size() > 2 && needs[2]) {
    db = reshape(sum_to(dy, norm.weight), needs.sizes(2));
  }
  return {dx, dw, db};
}

}  // namespace binade::detail
