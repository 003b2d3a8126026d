// RMSprop, Adagrad, NAdam, RAdam, LAMB and LARS follow their formulas over an arena.
#include <binade/optim/adagrad.h>
#include <binade/optim/lamb.h>
#include <binade/optim/lars.h>
#include <binade/optim/nadam.h>
#include <binade/optim/radam.h>
#include <binade/optim/rmsprop.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>

namespace binade::optim::optimizer_formulas_test {
namespace {

struct Reference {  // of one parameter
  std::vector<double> p, a, b, c;
  int64_t updates = 0;
};

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) {
    sum += value * value;
  }
  return std::sqrt(sum);
}

void step(Reference& r, const std::vector<double>& gradient, const RMSpropOptions& o) {
  for (size_t i = 0; i < r.p.size(); ++i) {
    const double g = gradient[i] + o.weight_decay * r.p[i];
    r.a[i] = o.alpha * r.a[i] + (1 - o.alpha) * g * g;
    r.b[i] = o.alpha * r.b[i] + (1 - o.alpha) * g;
    const double spread = o.centered ? r.a[i] - r.b[i] * r.b[i] : r.a[i];
    r.c[i] = o.momentum * r.c[i] + g / (std::sqrt(spread) + o.eps);
    r.p[i] -= o.lr * r.c[i];
  }
}

void step(Reference& r, const std::vector<double>& gradient, const AdagradOptions& o) {
  const auto t = static_cast<double>(++r.updates);
  for (size_t i = 0; i < r.p.size(); ++i) {
    const double g = gradient[i] + o.weight_decay * r.p[i];
    r.a[i] += g * g + (t == 1 ? o.initial_accumulator_value : 0);
    r.p[i] -= o.lr / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(r.a[i]) + o.eps);
  }
}

// Decay and moments of NAdam and RAdam; returns the gradient with coupled decay.
template <class Options>
double moments(Reference& r, size_t i, double gradient, const Options& o) {
  const double g = gradient + (o.decoupled_weight_decay ? 0 : o.weight_decay * r.p[i]);
  r.p[i] *= o.decoupled_weight_decay ? 1 - o.lr * o.weight_decay : 1;
  r.a[i] = o.betas[0] * r.a[i] + (1 - o.betas[0]) * g;
  r.b[i] = o.betas[1] * r.b[i] + (1 - o.betas[1]) * g * g;
  return g;
}

void step(Reference& r, const std::vector<double>& gradient, const NAdamOptions& o) {
  const auto t = static_cast<double>(++r.updates);
  const auto mu = [&](double i) {
    return o.betas[0] * (1 - 0.5 * std::pow(0.96, i * o.momentum_decay));
  };
  double product = 1;
  for (int i = 1; i <= r.updates; ++i) {
    product *= mu(i);
  }
  for (size_t i = 0; i < r.p.size(); ++i) {
    const double g = moments(r, i, gradient[i], o);
    const double divisor = std::sqrt(r.b[i] / (1 - std::pow(o.betas[1], t))) + o.eps;
    r.p[i] -= o.lr * (1 - mu(t)) / (1 - product) * g / divisor;
    r.p[i] -= o.lr * mu(t + 1) / (1 - product * mu(t + 1)) * r.a[i] / divisor;
  }
}

void step(Reference& r, const std::vector<double>& gradient, const RAdamOptions& o) {
  const auto t = static_cast<double>(++r.updates);
  const double corrected = 1 - std::pow(o.betas[1], t), limit = 2 / (1 - o.betas[1]) - 1,
               length = limit - 2 * t * std::pow(o.betas[1], t) / corrected;
  for (size_t i = 0; i < r.p.size(); ++i) {
    moments(r, i, gradient[i], o);
    double change = r.a[i] / (1 - std::pow(o.betas[0], t));
    if (length > 5) {
      change *=
          std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) *
          std::sqrt(corrected) / (std::sqrt(r.b[i]) + o.eps);
    }
    r.p[i] -= o.lr * change;
  }
}

void step(Reference& r, const std::vector<double>& gradient, const LAMBOptions& o) {
  const auto t = static_cast<double>(++r.updates);
  for (size_t i = 0; i < r.p.size(); ++i) {
    const double g = gradient[i];
    r.a[i] = o.betas[0] * r.a[i] + (1 - o.betas[0]) * g;
    r.b[i] = o.betas[1] * r.b[i] + (1 - o.betas[1]) * g * g;
    r.c[i] = r.a[i] / (1 - std::pow(o.betas[0], t)) /
                 (std::sqrt(r.b[i] / (1 - std::pow(o.betas[1], t))) + o.eps) +
             o.weight_decay * r.p[i];
  }
  const double p = norm(r.p), d = norm(r.c), ratio = p > 0 && d > 0 ? p / d : 1;
  for (size_t i = 0; i < r.p.size(); ++i) {
    r.p[i] -= o.lr * ratio * r.c[i];
  }
}

void step(Reference& r, const std::vector<double>& gradient, const LARSOptions& o) {
  const double p = norm(r.p), g = norm(gradient);
  const double ratio =
      p > 0 && g > 0 ? o.trust_coefficient * p / (g + o.weight_decay * p + o.eps) : 1;
  for (size_t i = 0; i < r.p.size(); ++i) {
    r.a[i] = o.momentum * r.a[i] + o.lr * ratio * (gradient[i] + o.weight_decay * r.p[i]);
    r.p[i] -= r.a[i];
  }
}

const std::vector<ParameterSpec> kMixedBag = {{"conv", {5, 3, 3, 3}, DType::f64, false, true},
                                              {"bias", {7}, DType::f64, true},
                                              {"empty", {0}, DType::f64},
                                              {"scalar", {}, DType::f64},
                                              {"matrix", {128, 3}, DType::f64}};

template <class O, class Options>
void follow(const Options& options) {
  const TestParameters parameters(kMixedBag);
  O optimizer(parameters.list, options);
  std::vector<Reference> references;
  for (const Parameter& parameter : parameters.list) {
    const std::vector<double> p = values_of(parameter.value), zeros(p.size());
    references.push_back({p, zeros, zeros, zeros});
  }
  for (int t = 0; t < 9; ++t) {
    for (size_t i = 0; i < parameters.list.size(); ++i) {
      if (t == 2 && i == 1) {
        continue;  // a step without this parameter's gradient
      }
      const Tensor g = randn(parameters.list[i].value.sizes(), DType::f64);
      parameters.set_gradient(i, g, t % 2 ? 1024 : 1);
      std::vector<double> halved = values_of(g);
      for (double& value : halved) {
        value /= 2;
      }
      step(references[i], halved, options);
    }
    ASSERT_EQ(optimizer.step({.divisor = 2}), StepOutcome::applied);
    for (size_t i = 0; i < parameters.list.size(); ++i) {
      const std::vector<double> got = values_of(parameters.list[i].value);
      for (size_t k = 0; k < got.size(); ++k) {
        ASSERT_NEAR(got[k], references[i].p[k], 1e-11 * (1 + std::abs(got[k])))
            << parameters.list[i].name << " step " << t;
      }
    }
  }
}

TEST(RMSprop, FollowsTheFormula) {
  follow<RMSprop>(RMSpropOptions{});
  follow<RMSprop>(RMSpropOptions{.alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1, .momentum = 0.5});
  follow<RMSprop>(RMSpropOptions{.eps = 1e-3, .momentum = 0.9, .centered = true});
}

TEST(Adagrad, FollowsTheFormula) {
  follow<Adagrad>(AdagradOptions{});
  follow<Adagrad>(AdagradOptions{
      .lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator_value = 0.5});
}

TEST(NAdam, FollowsTheFormula) {
  follow<NAdam>(NAdamOptions{});
  follow<NAdam>(
      NAdamOptions{.betas = {0.5, 0.9}, .eps = 1e-3, .weight_decay = 0.1, .momentum_decay = 0.5});
  follow<NAdam>(NAdamOptions{.lr = 0.1, .weight_decay = 0.1, .decoupled_weight_decay = true});
}

// With beta2 = 0.9 the step is adaptive from the sixth on, with 0.5 never.
TEST(RAdam, FollowsTheFormula) {
  follow<RAdam>(RAdamOptions{});
  follow<RAdam>(RAdamOptions{.lr = 0.1, .betas = {0.8, 0.9}, .eps = 1e-3, .weight_decay = 0.1});
  follow<RAdam>(RAdamOptions{
      .lr = 0.1, .betas = {0.9, 0.5}, .weight_decay = 0.1, .decoupled_weight_decay = true});
}

TEST(LAMB, FollowsTheFormula) {
  follow<LAMB>(LAMBOptions{.lr = 0.02});
  follow<LAMB>(LAMBOptions{.betas = {0.5, 0.9}, .eps = 1e-3, .weight_decay = 0});
}

TEST(LARS, FollowsTheFormula) {
  follow<LARS>(LARSOptions{});
  follow<LARS>(LARSOptions{.momentum = 0, .weight_decay = 0.1, .trust_coefficient = 0.1});
}

}  // namespace
}  // namespace binade::optim::optimizer_formulas_test
