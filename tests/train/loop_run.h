// A hand-written training loop with every part that a checkpoint saves. A test can stop it after
// any batch.
#pragma once
#include <binade/binade.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/data/fake_dataset.h"

namespace binade::train::test {

struct LoopNet : nn::Module {
  explicit LoopNet(int64_t hidden = 8)
      : first({.in = 48, .out = hidden}), last({.in = hidden, .out = 10}) {
    register_module("first", first);
    register_module("dropout", dropout);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) override {
    if (is_training()) {
      const NoGradGuard guard;
      calls += 0.125;
    }
    return last(dropout(relu(first(flatten(x, 1))))) + sin(calls + arange(10));
  }
  nn::Linear first;
  nn::Dropout dropout{{.p = 0.3}};
  nn::Linear last;
  nn::Buffer calls{*this, "calls", zeros({10})};
};

// Two networks in f16 with masters, one of which follows the other, and every other kind of state.
struct Loop {
  explicit Loop(uint64_t seed, const Precision& precision = Precision::mixed(DType::f16))
      : data(22), loader(data, {.batch = 4, .workers = 0, .seed = 3}) {
    manual_seed(seed);
    model.emplace();
    target.emplace();
    for (LoopNet* net : {&*model, &*target}) {
      net->to(Device{}, precision);
    }
    adam.emplace(model->parameters(), optim::AdamWOptions{.lr = 0.01});
    schedule.emplace(optim::WarmupCosine(*adam, {.warmup = 3, .total = 18}));
    plateau.emplace(*adam, optim::ReduceLROnPlateauOptions{.patience = 1});
    ema.emplace(*model, EmaOptions{.decay = 0.9});
    at.loader = &loader;
  }
  std::vector<CheckpointPart> parts() {
    return {*adam,
            scaler,
            *schedule,
            *plateau,
            *ema,
            generator(),
            at,
            numbers,
            {"noise", noise},
            {"best", best},
            {"seen", seen},
            {"text", text_},
            *model,
            {"target", *target}};
  }
  // Trains to the end or for `most` batches; saves after every second batch.
  void run(const std::string& path, int64_t most = 1 << 20) {
    for (; at.epoch < 3; ++at.epoch, at.batch = 0) {
      for (const data::Batch& batch : loader.epoch(at.epoch, at.batch)) {
        if (most-- == 0) {
          return;
        }
        step(batch);
        ++at.batch;
        if (++seen % 2 == 0) {
          EXPECT_TRUE(save_checkpoint({.path = path}, parts()));
        }
      }
    }
  }
  void step(const data::Batch& batch) {
    const Tensor loss =
        cross_entropy((*model)(batch.images + randn(batch.images.sizes()) * 0.1), batch.labels);
    scaler.scale(loss).backward();
    schedule->advance(scaler.step(*adam));
    target->soft_update(*model, 1e-4);
    ema->update();
    const double now = loss.item();
    best = std::min(best, static_cast<float>(now));
    numbers["sum"] += now;
    numbers[text("of batch ", seen % 3)] = now;
    noise += randn({3});
    text_ = text(text_.size() > 20 ? "" : text_, seen, ";");
    plateau->advance(now);
  }
  std::string record() {
    NamedTensors all = model->state();
    for (const auto& part : {adam->state_tensors(), target->exact_state(), ema->state()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    all.emplace_back("noise", noise);
    std::string out = text(state_hash(all), " ", best, " ", seen, " ", text_, " ", generator().seed,
                           " ", generator().offset, " ", at.epoch, " ", at.batch);
    for (const auto& scalars :
         {numbers, adam->state_scalars(), scaler.state_scalars(), plateau->state_scalars()}) {
      for (const auto& [name, value] : scalars) {
        out += text(" ", name, "=", value);
      }
    }
    return out + text(" ", schedule->step());
  }

  data::test::FakeDataset data;
  data::Loader loader;
  std::optional<LoopNet> model, target;
  std::optional<optim::AdamW> adam;
  optim::LossScaler scaler;
  std::optional<optim::Schedule> schedule;
  std::optional<optim::ReduceLROnPlateau> plateau;
  std::optional<Ema> ema;
  LoaderPosition at;
  Numbers numbers;
  Tensor noise = zeros({3});
  float best = std::numeric_limits<float>::infinity();
  size_t seen = 0;
  std::string text_;
};

}  // namespace binade::train::test
