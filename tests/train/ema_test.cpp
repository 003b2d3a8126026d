// Tests Ema, partial loading, clones, soft updates and the metadata of a model file.
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/conv.h>
#include <binade/nn/linear.h>
#include <binade/nn/member.h>
#include <binade/nn/norm.h>
#include <binade/nn/sequential.h>
#include <binade/optim/sgd.h>
#include <binade/train/ema.h>
#include <binade/train/model_file.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include <tests/support/error_of.h>

namespace ema_test {
namespace {

namespace nn = binade::nn;
using binade::DType;
using binade::Error;
using binade::error_of;
using binade::NamedTensors;
using binade::Precision;
using binade::Tensor;
using binade::train::Ema;

void expect_part(const std::string& whole, const std::string& part) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole;
}

struct Net : nn::Module {
  explicit Net(int64_t classes = 3) : fc(*this, "fc", {.in = 4, .out = classes}) {}
  Tensor forward(const Tensor& x) override { return fc(bn(body(x))); }
  nn::Linear body{*this, "body", {.in = 5, .out = 4}};
  nn::BatchNorm1d bn{*this, "bn", {.channels = 4}};
  nn::Buffer seen{*this, "seen", binade::zeros({2}, DType::i64)};
  nn::Linear fc;
};

std::vector<double> values_of(const NamedTensors& tensors) {
  std::vector<double> all;
  for (const auto& [name, tensor] : tensors) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      all.push_back(tensor.at(i));
    }
  }
  return all;
}

void train_a_step(Net& net, binade::optim::SGD& sgd) {
  net.seen.fill_(net.seen.at(0) + 1);
  const Tensor y = net(binade::randn({6, 5}));
  binade::mean(y * y).backward();
  EXPECT_EQ(sgd.step(), binade::optim::StepOutcome::applied);
}

// A step inside of applied() is lost, and a warning names a tensor; reading the model changes
// nothing.
TEST(Ema, WarnsOfAStepWhileTheAveragesAreApplied) {
  for (const Precision& precision : {Precision::full(), Precision::mixed(DType::f16)}) {
    Net net;
    net.to({}, precision);
    binade::optim::SGD sgd(net.parameters(), {.lr = 0.1});
    Ema ema(net, {.decay = 0.9});
    std::string warnings;
    const auto before = binade::set_warning_handler([&](const std::string& w) { warnings += w; });
    {
      const auto scope = ema.applied();
      net.eval();
      const binade::NoGradGuard no_grad;
      net(binade::randn({6, 5}));
      static_cast<void>(net.exact_state());
    }
    EXPECT_EQ(warnings, "");
    {
      const auto scope = ema.applied();
      net.train();
      const Tensor y = net(binade::randn({6, 5}));
      binade::mean(y * y).backward();
      EXPECT_EQ(sgd.step(), binade::optim::StepOutcome::applied);
    }
    binade::set_warning_handler(before);
    expect_part(warnings, "Ema: 'body.weight' was changed while the averages were applied");
  }
}

// The averages follow the formula in double, whatever dtype the model stores.
TEST(Ema, FollowsTheExactValues) {
  for (const Precision& precision : {Precision::full(), Precision::mixed(DType::f16)}) {
    binade::manual_seed(2);
    Net net;
    net.to({}, precision);
    binade::optim::SGD sgd(net.parameters(), {.lr = 0.1});
    Ema ema(net, {.decay = 0.9});
    std::vector<double> want = values_of(net.exact_state());
    for (int step = 0; step < 5; ++step) {
      train_a_step(net, sgd);
      ema.update();
      const std::vector<double> now = values_of(net.exact_state());
      for (size_t i = 0; i < want.size(); ++i) {
        want[i] = 0.9 * want[i] + 0.1 * now[i];
      }
    }
    EXPECT_EQ(ema.updates(), 5);
    const NamedTensors& averages = ema.averages();
    size_t i = 0;
    for (const auto& [name, average] : averages) {
      for (int64_t k = 0; k < average.numel(); ++k, ++i) {
        if (name == "seen") {
          EXPECT_EQ(average.at(k), 5) << name;
        } else {
          EXPECT_EQ(average.dtype(), DType::f32);
          EXPECT_NEAR(average.at(k), want[i], 1e-6) << name;
        }
      }
    }
  }
}

TEST(Ema, AppliesAndRestoresExactly) {
  for (const Precision& precision :
       {Precision::full(), Precision::mixed(DType::f16), Precision::half(DType::bf16)}) {
    binade::manual_seed(3);
    Net net;
    net.to({}, precision);
    binade::optim::SGD sgd(net.parameters(), {.lr = 0.1});
    Ema ema(net, {.decay = 0.5});
    train_a_step(net, sgd);
    ema.update();
    const std::vector<double> before = values_of(net.exact_state());
    const double average = ema.averages()[1].second.at(3);
    {
      const auto scope = ema.applied();
      EXPECT_NEAR(net.exact_state()[1].second.at(3), average, 2e-3);
      EXPECT_NE(values_of(net.exact_state()), before);
      expect_part(error_of([&] { ema.update(); }), "while the averages are applied");
      expect_part(error_of([&] { (void)ema.applied(); }), "applied already");
    }
    EXPECT_EQ(values_of(net.exact_state()), before);
    train_a_step(net, sgd);
    ema.update();
  }
}

TEST(Ema, SavesAndLoadsItsState) {
  Net net;
  Ema ema(net, {.decay = 0.9}), other(net, {.decay = 0.9});
  net.fc.weight.detach().fill_(2);
  ema.update();
  other.load_state(ema.state());
  EXPECT_EQ(values_of(other.averages()), values_of(ema.averages()));
  EXPECT_EQ(other.updates(), 1);
  NamedTensors broken = ema.state();
  broken.pop_back();
  expect_part(error_of([&] { other.load_state(broken); }), "1 missing: ema_updates");
  EXPECT_THROW(Ema(net, {.decay = 1.5}), Error);
}

TEST(LoadState, SwapsAHead) {
  Net pretrained, net(7);
  pretrained.seen.fill_(9);
  const double head = net.fc.weight.at(0);
  const nn::LoadReport report = net.load_state(pretrained.state(), {.skip = {"fc.*"}});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"fc.weight", "fc.bias"}));
  EXPECT_EQ(report.unexpected, report.missing);
  EXPECT_EQ(report.loaded.size(), 7u);
  EXPECT_EQ(net.fc.weight.at(0), head);
  EXPECT_EQ(net.body.weight.at(2), pretrained.body.weight.at(2));
  EXPECT_EQ(net.seen.at(1), 9);
  expect_part(error_of([&] { net.load_state(pretrained.state()); }), "fc.weight has [3, 4]");
  expect_part(error_of([&] {
                net.load_state(pretrained.state(), {.skip = {"fc", "heads"}});
              }),
              "got skip 'heads', which matches no name");
}

TEST(LoadState, RenamesAndReports) {
  Net from, to;
  NamedTensors state;
  for (const auto& [name, tensor] : from.state()) {
    state.emplace_back("module." + (name.starts_with("body.") ? "stem" + name.substr(4) : name),
                       tensor);
  }
  const nn::LoadOptions names{.rename = {{"module.stem", "body"}, {"module", ""}}};
  EXPECT_EQ(to.load_state(state, names).loaded.size(), 9u);
  EXPECT_EQ(values_of(to.state()), values_of(from.state()));
  expect_part(error_of([&] {
                to.load_state(state, {.rename = {{"model", ""}}});
              }),
              "got rename from 'model', but the state has no such name");
  state.erase(state.begin());
  state.emplace_back("module.extra", binade::ones({1}));
  expect_part(error_of([&] { to.load_state(state, names); }), "missing: ");
  const nn::LoadReport report = to.load_state(state, {.rename = names.rename, .strict = false});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"module.extra"});
  EXPECT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.loaded.size(), 8u);
}

TEST(Clone, CopiesEverything) {
  for (const Precision& precision : {Precision::full(), Precision::mixed(DType::bf16)}) {
    Net net;
    net.to({}, precision);
    binade::optim::SGD sgd(net.parameters(), {.lr = 0.1});
    train_a_step(net, sgd);
    net.freeze("body");
    net.bn.eval();
    const auto copy = nn::clone(net, [] { return std::make_unique<Net>(); });
    EXPECT_EQ(values_of(copy->exact_state()), values_of(net.exact_state()));
    EXPECT_EQ(copy->fc.weight.dtype(), net.fc.weight.dtype());
    EXPECT_EQ(copy->training_modes(), net.training_modes());
    EXPECT_FALSE(copy->body.weight.requires_grad());
    EXPECT_TRUE(copy->fc.weight.requires_grad());
    const Tensor x = binade::randn({3, 5});
    EXPECT_EQ((*copy)(x).at(4), net(x).at(4));
    const double before = copy->fc.weight.at(0);
    train_a_step(net, sgd);
    EXPECT_EQ(copy->fc.weight.at(0), before);
  }
  Net net;
  expect_part(error_of([&] { nn::clone(net, [] { return std::make_unique<Net>(4); }); }),
              "clone: make() returned another structure: got parameter fc.weight [4, 4], expected "
              "parameter fc.weight [3, 4]");
  nn::Sequential relu, gelu;
  relu.add<nn::ReLU>();
  expect_part(error_of([&] {
                nn::clone(relu, [] {
                  auto other = std::make_unique<nn::Sequential>();
                  other->add<nn::Tanh>();
                  return other;
                });
              }),
              "expected module 0 of class binade::nn::ReLU");
}

// A step of 2e-4 does not move an f16 weight near 1, but it moves its master.
TEST(SoftUpdate, MovesMastersByLittle) {
  Net online, target;
  for (Net* net : {&online, &target}) {
    const binade::NoGradGuard guard;
    net->fc.weight.fill_(net == &online ? 2 : 1);
    net->seen.fill_(net == &online ? 4 : 1);
    net->to({}, Precision::mixed(DType::f16));
  }
  for (int i = 0; i < 10; ++i) {
    nn::soft_update(target, online, 2e-4);
  }
  const double want = 2 - std::pow(1 - 2e-4, 10);
  for (const auto& [name, value] : target.exact_state()) {
    if (name == "fc.weight") {
      EXPECT_NEAR(value.at(5), want, 1e-6);
    } else if (name == "seen") {
      EXPECT_EQ(value.at(0), 4);
    }
  }
}

TEST(ModelFile, CarriesMetadata) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("binade_metadata_" + std::to_string(getpid())))
          .string();
  Net net, other(7);
  const binade::train::Metadata metadata = {{"classes", "cat,dog,eel"}, {"mean", "0.5"}};
  binade::train::save_model(path, net, metadata);
  EXPECT_EQ(binade::train::load_metadata(path), metadata);
  EXPECT_EQ(binade::train::load_model(path, other, {.skip = {"fc"}}).loaded.size(), 7u);
  EXPECT_EQ(other.body.weight.at(0), net.body.weight.at(0));
  binade::train::save_model(path, net);
  EXPECT_TRUE(binade::train::load_metadata(path).empty());
  expect_part(error_of([&] {
                binade::train::save_model(path, net, {{"binade.format", "9"}});
              }),
              "got the metadata key 'binade.format'");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ema_test
