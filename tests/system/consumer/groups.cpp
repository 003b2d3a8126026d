// Parameter groups with every option, and `maximize`.
#include "expect.h"
using namespace binade;

struct Net : nn::Module {
  nn::Linear a{*this, "a", {.in = 3, .out = 3}}, b{*this, "b", {.in = 3, .out = 3}};
  Tensor forward(const Tensor& x) override { return b(a(x)); }
};

ParameterList below(Net& net, const std::string& prefix) {
  return net.parameters().filter([&](const Parameter& p) { return p.name.starts_with(prefix); });
}

// A gradient of ones everywhere.
void gradient_of_ones(Net& net) {
  (sum(net.a.weight) + sum(net.a.bias) + sum(net.b.weight) + sum(net.b.bias)).backward();
}

double change(const Tensor& before, const Tensor& after) { return (after - before).at(0); }

void rates_and_maximize() {
  Net net;
  optim::SGD sgd({{.parameters = below(net, "a."), .lr = 0.5},
                  {.parameters = below(net, "b."), .maximize = true}},
                 {.lr = 0.1});
  const Tensor a = net.a.weight.detach().clone(), b = net.b.weight.detach().clone();
  gradient_of_ones(net);
  EXPECT(sgd.step() == StepOutcome::applied);
  EXPECT(std::fabs(change(a, net.a.weight) + 0.5) < 1e-6);
  EXPECT(std::fabs(change(b, net.b.weight) - 0.1) < 1e-6);
  EXPECT(sgd.group_count() == 2 && sgd.lr(0) == 0.5 && sgd.lr(1) == 0.1);
}

// One group with other betas and eps is the same as an optimizer of its own with them.
void adam_groups() {
  Net grouped, plain;
  plain.load_state(grouped.state());
  optim::AdamW one({{.parameters = below(grouped, "a.")},
                    {.parameters = below(grouped, "b."),
                     .weight_decay = 0.5,
                     .betas = {{0.5, 0.6}},
                     .eps = 1e-3,
                     .amsgrad = true}},
                   {.lr = 0.1});
  optim::AdamW first(below(plain, "a."), {.lr = 0.1});
  optim::AdamW second(
      below(plain, "b."),
      {.lr = 0.1, .betas = {0.5, 0.6}, .eps = 1e-3, .weight_decay = 0.5, .amsgrad = true});
  for (int i = 0; i < 3; ++i) {
    gradient_of_ones(grouped);
    gradient_of_ones(plain);
    EXPECT(one.step() == StepOutcome::applied);
    EXPECT(first.step() == StepOutcome::applied && second.step() == StepOutcome::applied);
  }
  EXPECT(equal(grouped.a.weight, plain.a.weight) && equal(grouped.b.weight, plain.b.weight));
  EXPECT(contains(
      error_of([&] {
        Net net;
        optim::SGD({{.parameters = net.parameters(), .betas = {{0.9, 0.99}}}}, {.lr = 0.1});
      }),
      "betas"));
}

int main() {
  manual_seed(11);
  rates_and_maximize();
  adam_groups();
}
