// bernoulli and multinomial. Draws with replacement search the running sums of the weights. Draws
// without replacement take the classes whose exponential clocks ring first: class k rings at
// -log(u) / p_k, so the first one is k with probability p_k / sum p, and so on (P. Efraimidis and
// P. Spirakis, "Weighted random sampling with a reservoir", IPL 97, 2006).
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/random.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/random/draw.h>

#include <cmath>

namespace binade {
namespace {

// Checks the weights [rows, classes], f64, of multinomial.
void check_weights(const Tensor& weights, int64_t samples, bool replacement) {
  const Tensor least = amin(weights), sums = sum(weights, {1});
  const Tensor valid = logical_and(ge(least, 0), lt(amax(sums), INFINITY));
  check(valid.item() != 0, "multinomial: got weights from ", least.item(), " to ",
        amax(weights).item(), ", expected finite ones that are not negative");
  const Tensor positive = amin(sum(cast(gt(weights, 0), DType::f64), {1}));
  const int64_t needed = replacement ? (samples > 0 ? 1 : 0) : samples;
  const auto found = static_cast<int64_t>(positive.item());
  check(found >= needed, "multinomial: got a row with ", found, " weights above 0, expected ",
        needed, " or more for ", samples, " samples ", replacement ? "with" : "without",
        " replacement");
}

// Uniform in (0, 1), with 48 bits: (k + 1/2) / 2^48.
Tensor wide_uniform(const Dims& sizes, Device device) {
  const Tensor k = randint(0, int64_t(1) << 48, sizes, DType::f64, device);
  return mul(add(k, 0.5), 0x1p-48);
}

Tensor draws(const Tensor& weights, int64_t samples, bool replacement) {
  if (!replacement) {
    const Tensor rings = neg(log(wide_uniform(weights.sizes(), weights.device())));
    return topk(div(weights, rings), samples, 1).indices;
  }
  const Dims sizes{weights.size(0), samples};
  Tensor y = empty(sizes, DType::i64, weights.device());
  kernels::choose_weighted({.weights = weights,
                            .sums = cumsum(weights, 1).contiguous(),
                            .at = wide_uniform(sizes, weights.device()),
                            .y = y});
  return y;
}

}  // namespace

Tensor bernoulli(const Tensor& p_) {  // y = 1 if u < p, else 0
  static constexpr Op kOp{"bernoulli", OpClass::movement};
  auto [p] = kOp.enter(p_);
  check_floating(kOp.name, p);
  Generator& source = generator();
  Tensor y = empty(p.sizes(), p.dtype(), p.device());
  kernels::bernoulli({.p = p.detach().contiguous(),
                      .y = y,
                      .seed = source.seed,
                      .offset = source.take(static_cast<uint64_t>(p.numel())),
                      .advance = source.advance});
  return kOp.plain({p}, y);
}

Tensor multinomial(const Tensor& p_, int64_t samples, bool replacement) {
  static constexpr Op kOp{"multinomial", OpClass::movement};
  auto [p] = kOp.enter(p_);
  check_floating(kOp.name, p);
  check((p.dim() == 1 || p.dim() == 2) && p.sizes().back() > 0, "multinomial: got p of shape ",
        p.sizes(), ", expected [classes] or [rows, classes] with a class");
  const int64_t classes = p.sizes().back(), rows = p.dim() == 2 ? p.size(0) : 1;
  check(samples >= 0 && (replacement || samples <= classes), "multinomial: got ", samples,
        " samples of ", classes, " classes, expected 0 or more",
        replacement ? "" : " and, without replacement, no more than classes");
  static_cast<void>(element_count({rows, samples}, kOp.name));
  const NoGradGuard guard;
  const PrecisionScope full{Precision::full()};  // the steps are f64 under every policy
  const Tensor weights = cast(p.detach(), DType::f64).contiguous().reshape({rows, classes});
  if (weights.numel() > 0) {
    check_weights(weights, samples, replacement);
  }
  Tensor y = draws(weights, samples, replacement);
  y = p.dim() == 2 ? y : y.reshape({samples});
  return kOp.plain({p}, y);
}

}  // namespace binade
