// The numbers of an NAdam or RAdam step, for every backend.
#pragma once
#include <binade/kernels/optimizer/optimizer_moment.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

// For a step whose scalars come as arguments.
RangeScalars step_scalars_of(const MomentStep& a);

struct MomentNumbers {
  double gradient = 0, average = 0, root = 0;
  double adaptive = 1;  // 0: the divisor is 1
};

// With mu_i = beta1 (1 - 0.96^(i momentum_decay) / 2) and P_t = mu_1 ... mu_t:
//   gradient = lr (1 - mu_t) / (1 - P_t), average = lr mu_{t+1} / (1 - P_{t+1}).
// P_t is computed again in each step, so no state is needed; the loop ends where 1 - P_t rounds to
// 1, for beta1 = 0.9 after 400 factors.
BINADE_HD inline MomentNumbers nadam_numbers(const RangeScalars& w, double momentum_decay) {
  const double fading = std::pow(0.96, momentum_decay);
  const auto momentum = [&](double i) { return w.momentum * (1 - 0.5 * std::pow(fading, i)); };
  double product = 1, power = 1;
  for (double i = 1; i <= w.update && product > 0x1p-60; i += 1) {
    power *= fading;
    product *= w.momentum * (1 - 0.5 * power);
  }
  const double now = momentum(w.update), next = momentum(w.update + 1);
  return {.gradient = w.lr * (1 - now) / (1 - product),
          .average = w.lr * next / (1 - product * next),
          .root = w.second_scale};
}

// With r = 2 / (1 - beta2) - 1 and r_t = r - 2 t beta2^t / (1 - beta2^t): for r_t > 5
//   average = lr sqrt((r_t - 4) (r_t - 2) r / ((r - 4) (r - 2) r_t)) sqrt(1 - beta2^t) / (1 -
//   beta1^t),
// else lr / (1 - beta1^t), and the step is not adaptive.
BINADE_HD inline MomentNumbers radam_numbers(const RangeScalars& w, double beta2) {
  const double decayed = std::pow(beta2, w.update), limit = 2 / (1 - beta2) - 1,
               length = limit - 2 * w.update * decayed / (1 - decayed),
               average = w.lr * w.first_scale;
  if (!(length > 5)) {
    return {.average = average, .adaptive = 0};
  }
  const double rectified =
      (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length);
  return {.average = average * std::sqrt(rectified * (1 - decayed)), .root = 1};
}

// What a step needs beside its scalars.
struct MomentSource {
  MomentRule rule;
  double beta2, momentum_decay;
};
BINADE_HD inline MomentNumbers moment_numbers(const MomentSource& source, const RangeScalars& w) {
  return source.rule == MomentRule::nadam ? nadam_numbers(w, source.momentum_decay)
                                          : radam_numbers(w, source.beta2);
}

}  // namespace binade::kernels
