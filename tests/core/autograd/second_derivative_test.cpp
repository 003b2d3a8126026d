// Second derivatives of the ops that models with a gradient in their loss use: gradient penalties,
// equations in derivatives, steps that are differentiated.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/print.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace binade::second_derivative_test {
namespace {

using Inputs = std::vector<Tensor>;
struct Case {
  std::string name;
  std::function<Tensor(const Inputs&)> f;
  Inputs inputs;
};

// Away from 0, 1 and other kinks.
Tensor values(const Dims& sizes, double low, double high) {
  const Tensor x = empty(sizes, DType::f64);
  fill_uniform(x, low, high);
  return x;
}
Tensor either_sign() { return cat({values({2, 3}, -1.9, -0.3), values({2, 3}, 0.3, 1.9)}); }

std::vector<Case> of_one_input() {
  using Function = Tensor (*)(const Tensor&);
  const std::vector<std::pair<std::string, Function>> anywhere = {
      {"abs", abs},     {"square", square},       {"exp", exp},
      {"expm1", expm1}, {"exp2", exp2},           {"sin", sin},
      {"cos", cos},     {"atan", atan},           {"sinh", sinh},
      {"cosh", cosh},   {"tanh", tanh},           {"erf", erf},
      {"frac", frac},   {"sigmoid", sigmoid},     {"log_sigmoid", log_sigmoid},
      {"relu", relu},   {"silu", silu},           {"selu", selu},
      {"mish", mish},   {"softsign", softsign},   {"hardsigmoid", hardsigmoid},
      {"relu6", relu6}, {"hardswish", hardswish}, {"reciprocal", reciprocal},
      {"neg", neg}};
  const std::vector<std::pair<std::string, Function>> above_0 = {
      {"sqrt", sqrt}, {"rsqrt", rsqrt}, {"log", log},   {"log1p", log1p},
      {"log2", log2}, {"asin", asin},   {"acos", acos}, {"tan", tan}};
  std::vector<Case> cases;
  for (const auto& [name, f] : anywhere) {
    cases.push_back({name, [f = f](const Inputs& in) { return f(in[0]); }, {either_sign()}});
  }
  for (const auto& [name, f] : above_0) {
    cases.push_back(
        {name, [f = f](const Inputs& in) { return f(in[0]); }, {values({3, 4}, 0.2, 0.8)}});
  }
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> with_options = {
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }},
      {"elu", [](const Tensor& x) { return elu(x, 0.7); }},
      {"celu", [](const Tensor& x) { return celu(x, 0.7); }},
      {"softplus", [](const Tensor& x) { return softplus(x, 2, 3); }},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 1.1); }},
      {"hardtanh", [](const Tensor& x) { return hardtanh(x, -1, 1.1); }},
      {"pow 3", [](const Tensor& x) { return pow(x, 3); }},
      {"2 / x", [](const Tensor& x) { return div(2, x); }},
      {"softmax", [](const Tensor& x) { return softmax(x, 0); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }}};
  for (const auto& [name, f] : with_options) {
    cases.push_back({name, [f = f](const Inputs& in) { return f(in[0]); }, {either_sign()}});
  }
  return cases;
}

std::vector<Case> of_several_inputs() {
  const Tensor x = either_sign(), y = values({4, 1}, 0.4, 1.5), w = values({2, 3}, -1, 1),
               b = values({2}, -1, 1);
  return {{"div", [](const Inputs& in) { return div(in[0], in[1]); }, {x, y}},
          {"pow", [](const Inputs& in) { return pow(in[1], in[0]); }, {x, y}},
          {"atan2", [](const Inputs& in) { return atan2(in[0], in[1]); }, {x, y}},
          {"logaddexp", [](const Inputs& in) { return logaddexp(in[0], in[1]); }, {x, y}},
          {"maximum", [](const Inputs& in) { return maximum(in[0], square(in[1])); }, {x, y}},
          {"minimum", [](const Inputs& in) { return minimum(in[0], square(in[1])); }, {x, y}},
          {"fmod", [](const Inputs& in) { return fmod(in[0], in[1]); }, {x, y}},
          {"remainder", [](const Inputs& in) { return remainder(in[0], in[1]); }, {x, y}},
          {"linear", [](const Inputs& in) { return linear(in[0], in[1], in[2]); }, {x, w, b}},
          {"linear without a bias", [](const Inputs& in) { return linear(in[0], in[1]); }, {x, w}},
          {"linear and relu",
           [](const Inputs& in) { return square(linear(in[0], in[1], in[2], Activation::relu)); },
           {x, w, b}},
          {"linear of three dimensions",
           [](const Inputs& in) { return linear(unsqueeze(in[0], 1), in[1], in[2]); },
           {x, w, b}}};
}

std::vector<Case> of_reductions() {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> functions = {
      {"var", [](const Tensor& x) { return var(x, {1}); }},
      {"std", [](const Tensor& x) { return binade::std(x, {0}, false, true); }},
      {"norm", [](const Tensor& x) { return norm(x, 2, {1}); }},
      {"cross_entropy",
       [](const Tensor& x) {
         const Tensor classes = Tensor::from<int64_t>({2, -100, 0, 1});
         const Tensor weight = from_values({0.5, 1, 2}, {3}, DType::f64);
         return cross_entropy(x, classes, {.label_smoothing = 0.1, .weight = weight});
       }},
      {"cross_entropy per row",
       [](const Tensor& x) {
         return cross_entropy(x, Tensor::from<int64_t>({2, 1, 0, 1}),
                              {.reduction = Reduction::none});
       }},
      {"cross_entropy of probabilities",
       [](const Tensor& x) {
         const Tensor p = from_values({0.2, 0.3, 0.5}, {1, 3}, DType::f64);
         return cross_entropy(x, expand(p, {4, -1}).contiguous(), {.label_smoothing = 0.2});
       }},
      {"dropout",
       [](const Tensor& x) {
         manual_seed(4);
         return dropout(square(x), 0.4);
       }},
      {"norm of all", [](const Tensor& x) { return norm(x); }},
      {"norm 1", [](const Tensor& x) { return norm(x, 1, {0}); }},
      {"norm 3", [](const Tensor& x) { return norm(x, 3, {1}, true); }},
      {"norm inf", [](const Tensor& x) { return norm(x, INFINITY, {1}); }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x, {1}); }},
      {"normalize", [](const Tensor& x) { return normalize(x); }},
      {"sort", [](const Tensor& x) { return square(sort(x, 0).values); }},
      {"topk", [](const Tensor& x) { return square(topk(x, 2).values); }},
      {"max", [](const Tensor& x) { return square(max(x, 1).values); }},
      {"min", [](const Tensor& x) { return square(min(x, 0, true).values); }},
      {"cdist", [](const Tensor& x) { return cdist(x, narrow(square(x), 0, 1, 2)); }}};
  std::vector<Case> cases;
  for (const auto& [name, f] : functions) {
    cases.push_back({name, [f = f](const Inputs& in) { return f(in[0]); }, {either_sign()}});
  }
  return cases;
}

std::vector<Case> of_layers() {
  const Tensor x = values({3, 4, 5}, -2, 2), image = values({2, 4, 5, 6}, -1, 1),
               w = values({4}, 0.5, 1.5), b = values({4}, -1, 1), row = values({5}, 0.5, 1.5),
               mean = values({4}, -1, 1), var = values({4}, 0.5, 2);
  const Tensor kernel = values({6, 2, 3, 2}, -1, 1), bias = values({6}, -1, 1),
               transposed = values({4, 3, 2, 3}, -1, 1), line = values({2, 4, 3}, -1, 1);
  return {
      {"layer_norm",
       [](const Inputs& in) { return layer_norm(in[0], {5}, in[1], in[2]); },
       {x, row, row.clone()}},
      {"layer_norm without weights",
       [](const Inputs& in) {
         return layer_norm(in[0], {4, 5}, {}, {});
       },
       {x}},
      {"rms_norm", [](const Inputs& in) { return rms_norm(in[0], {5}, in[1]); }, {x, row}},
      {"group_norm",
       [](const Inputs& in) { return group_norm(in[0], 2, in[1], in[2]); },
       {image, w, b}},
      {"instance_norm",
       [](const Inputs& in) { return instance_norm(in[0], in[1], in[2]); },
       {image, w, b}},
      {"batch_norm",
       [](const Inputs& in) { return batch_norm(in[0], in[1], in[2], {}, {}, {.training = true}); },
       {image, w, b}},
      {"batch_norm and relu",
       [](const Inputs& in) {
         return square(batch_norm(in[0], in[1], in[2], {}, {},
                                  {.training = true, .residual = in[3], .relu = true}));
       },
       {image, w, b, values({2, 4, 5, 6}, -1, 1)}},
      {"batch_norm of inference",
       [mean, var](const Inputs& in) {
         return batch_norm(in[0], in[1], in[2], mean, var, {.training = false});
       },
       {image, w, b}},
      {"conv2d",
       [](const Inputs& in) {
         return conv2d(in[0], in[1], in[2],
                       {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
       },
       {image, kernel, bias}},
      {"conv2d and relu",
       [](const Inputs& in) {
         return square(conv2d(in[0], in[1], in[2], {.groups = 2}, Activation::relu));
       },
       {image, kernel, bias}},
      {"conv_transpose2d",
       [](const Inputs& in) {
         return conv_transpose2d(in[0], in[1], in[2],
                                 {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}});
       },
       {image, transposed, values({3}, -1, 1)}},
      {"avg_pool2d",
       [](const Inputs& in) {
         return square(avg_pool2d(in[0], {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}}));
       },
       {image}},
      {"adaptive_avg_pool2d",
       [](const Inputs& in) { return square(adaptive_avg_pool2d(in[0], 2, 3)); },
       {image}},
      {"conv1d",
       [](const Inputs& in) { return conv1d(in[0], in[1], {}, {.padding = 1}); },
       {x, line}}};
}

void check_all(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    Inputs inputs = test.inputs;
    for (Tensor& input : inputs) {
      input.require_grad();
    }
    EXPECT_NO_THROW(gradgradcheck(test.f, inputs)) << test.name;
  }
}

TEST(SecondDerivative, OfOneInput) { check_all(of_one_input()); }
TEST(SecondDerivative, OfSeveralInputs) { check_all(of_several_inputs()); }
TEST(SecondDerivative, OfReductions) { check_all(of_reductions()); }
TEST(SecondDerivative, OfLayers) { check_all(of_layers()); }

TEST(SecondDerivative, RecordedGradientsAreThoseOfTheKernels) {
  const std::vector<double> special = {-INFINITY, -200, -3, -1, -0.0, 0, 1, 3, 6, 200, INFINITY};
  std::vector<Case> cases;
  for (const Case& test : of_one_input()) {
    const bool rows = test.name.find("softmax") != std::string::npos;
    cases.push_back({test.name, test.f, {rows ? test.inputs[0] : Tensor::from(special)}});
  }
  for (const auto& more : {of_several_inputs(), of_reductions(), of_layers()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  for (const Case& test : cases) {
    Inputs inputs;
    for (const Tensor& input : test.inputs) {
      inputs.push_back(input.detach());
      inputs.back().require_grad();
    }
    const Tensor y = test.f(inputs), dy = rand_like(y.detach());
    const Inputs want = grad({y}, inputs, {.upstream = {dy}, .retain_graph = true});
    const Inputs got = grad({y}, inputs, {.upstream = {dy}, .create_graph = true});
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(allclose(got[i], want[i], 1e-10, 1e-12, true))
          << test.name << " input " << i << "\n"
          << got[i] << "\n"
          << want[i];
    }
  }
}

// Two layers, and the norm of the gradient of their result in the loss.
TEST(SecondDerivative, OfAGradientPenalty) {
  manual_seed(1);
  Tensor x = randn({8, 3}).require_grad(), w = randn({5, 3}).require_grad(),
         v = randn({1, 5}).require_grad();
  const Tensor score = linear(leaky_relu(linear(x, w), 0.2), v);
  const Tensor slope = grad(sum(score), {x}, {.create_graph = true})[0];
  const Tensor penalty = mean(square(sqrt(sum(square(slope), {1})) - 1.0));
  penalty.backward();
  // slope = v diag(m) w with the slopes m of leaky_relu: by hand for the last layer.
  const Tensor m = where(gt(matmul(x.detach(), transpose(w.detach(), 0, 1)), 0), 1.0, 0.2);
  Tensor v2 = v.detach().clone().require_grad();
  mean(square(sqrt(sum(square(matmul(mul(m, v2), w.detach())), {1})) - 1.0)).backward();
  EXPECT_TRUE(allclose(v.grad(), v2.grad(), 1e-4, 1e-6)) << v.grad() << v2.grad();
}

}  // namespace
}  // namespace binade::second_derivative_test
