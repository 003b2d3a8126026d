// Copies and followers of a model, and changes in place under the policy `mixed`: f32 masters.
#include "expect.h"
using namespace binade;

struct Net : nn::Module {
  nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
  nn::BatchNorm1d bn{*this, "bn", {.channels = 4}};
  nn::Linear head{*this, "head", {.in = 4, .out = 2}};
  Tensor forward(const Tensor& x) override { return head(relu(bn(fc(x)))); }
};
std::unique_ptr<Net> make_net() { return std::make_unique<Net>(); }

Tensor master(nn::Module& net, const std::string& name) {
  for (const auto& [at, value] : net.exact_state()) {
    if (at == name) {
      return value.clone();
    }
  }
  return {};
}

void train_step(Net& net, double lr) {
  optim::SGD sgd(net.parameters(), {.lr = lr});
  sum(square(net(randn({8, 4})))).backward();
  EXPECT(sgd.step() == StepOutcome::applied);
}

void clones() {
  Net net;
  net.to({}, Precision::mixed(DType::f16));
  train_step(net, 0.01);
  net.freeze("head");
  net.eval();
  const auto copy = nn::clone(net, make_net);
  EXPECT(!copy->is_training() && copy->fc.weight.dtype() == DType::f16);
  EXPECT(equal(master(*copy, "fc.weight"), master(net, "fc.weight")));
  EXPECT(!copy->head.weight.requires_grad() && copy->fc.weight.requires_grad());
  const Tensor x = randn({3, 4});
  EXPECT(equal((*copy)(x), net(x)));
  {
    const NoGradGuard guard;
    copy->fc.weight.fill_(0);
  }
  EXPECT(net.fc.weight.at(0) != 0);  // no memory is shared
  EXPECT(contains(error_of([&] { nn::clone(net, [] { return std::make_unique<nn::ReLU>(); }); }),
                  "clone: make() returned another structure"));
}

// A soft update of 2e-4 is far below half a unit of f16: only the masters can hold it.
void soft_updates() {
  Net online, target;
  for (Net* net : {&online, &target}) {
    net->to({}, Precision::mixed(DType::f16));
    const NoGradGuard guard;
    net->fc.weight.fill_(net == &online ? 2 : 1);
  }
  for (int i = 0; i < 1000; ++i) {
    nn::soft_update(target, online, 2e-4);
  }
  const double expected = 2 - std::pow(1 - 2e-4, 1000);
  EXPECT(std::fabs(master(target, "fc.weight").at(0) - expected) < 1e-4);
  EXPECT(std::fabs(target.fc.weight.at(0) - expected) < 1e-3);
  EXPECT(
      contains(error_of([&] { nn::soft_update(target, online, 2); }), "soft_update: got tau = 2"));
}

void averages() {
  Net net;
  train::Ema ema(net, {.decay = 0.5});
  const double before = net.fc.weight.at(0);
  {
    const NoGradGuard guard;
    net.fc.weight.fill_(before + 1);
  }
  ema.update();
  {
    const auto scope = ema.applied();
    EXPECT(std::fabs(net.fc.weight.at(0) - (before + 0.5)) < 1e-6);
    EXPECT(contains(error_of([&] { ema.update(); }), "Ema"));
  }
  EXPECT(std::fabs(net.fc.weight.at(0) - (before + 1)) < 1e-6);
}

// Whatever way a weight is written, the next step keeps it.
void in_place_writes() {
  using Write = std::function<void(Net&)>;
  const std::vector<Write> writes = {
      [](Net& net) { net.fc.weight.fill_(5); },
      [](Net& net) { nn::init::constant(net.fc.weight, 5); },
      [](Net& net) {
        net.fc.weight.copy_(full({4, 4}, 5));
      },
      [](Net& net) { net.fc.weight *= 0, net.fc.weight += 5; },
      [](Net& net) { index_put_(net.fc.weight, {Slice{}}, 5.0); },
      [](Net& net) {
        for (int i = 0; i < 16; ++i) {
          net.fc.weight.data<half>()[i] = half(5.0f);
        }
      },
      [](Net& net) { net.fc.weight[1].data<half>()[2] = half(5.0f); },
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    Net net;
    net.to({}, Precision::mixed(DType::f16));
    train_step(net, 0.01);
    {
      const NoGradGuard guard;
      writes[i](net);
    }
    train_step(net, 0);
    EXPECT(net.fc.weight[1].at(2) == 5);
    EXPECT(master(net, "fc.weight")[1].at(2) == 5);
  }
}

// A pointer that only reads keeps the digits of the masters; one that is kept may write later.
void pointers() {
  Net net;
  net.to({}, Precision::mixed(DType::f16));
  train_step(net, 0.01);
  const Tensor before = master(net, "fc.weight");
  half* kept = net.fc.weight.data<half>();
  EXPECT(float(kept[0]) == net.fc.weight.at(0));
  train_step(net, 0);
  EXPECT(equal(master(net, "fc.weight"), before));
  kept[3] = half(7.0f);
  train_step(net, 0);
  Tensor after = master(net, "fc.weight");
  EXPECT(after.at(3) == 7 && net.fc.weight.at(3) == 7);
  after[0][3] += before.at(3) - 7;
  EXPECT(equal(after, before));  // all others kept their digits
}

int main() {
  manual_seed(7);
  clones();
  soft_updates();
  averages();
  in_place_writes();
  pointers();
}
