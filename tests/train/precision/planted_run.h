// A small f16 training in which one step overflows for a planted cause.
#pragma once
#include <binade/binade.h>
#include <binade/core/observe/warning.h>
#include <binade/train/precision/overflow_cause.h>
#include <binade/train/precision/scaler_log.h>
#include <gtest/gtest.h>
#include <tests/support/temporary_directory.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace binade::train::test {

inline constexpr int64_t kRows = 96, kRowsOfBatch = 8, kSteps = kRows / kRowsOfBatch;

// fc1, tanh, a gain per channel, fc2; `spare` does not affect the loss.
class PlantNet : public nn::Module {
 public:
  PlantNet() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_parameter("gain", gain);
    register_parameter("spare", spare);
  }
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x)) * gain); }
  nn::Linear fc1{{.in = 12, .out = 16}}, fc2{{.in = 16, .out = 10}};
  Tensor gain = ones({16}), spare = ones({4});
};

inline std::unique_ptr<nn::Module> make_plant_net() { return std::make_unique<PlantNet>(); }

struct Plant {
  OverflowCause cause = OverflowCause::none;
  int64_t step = 0;
  int variant = 0;  // one of ten places and kinds
};

// The term that the planted step adds to its loss or uses in its place.
inline Tensor planted_term(PlantNet& net, const Plant& plant, const Tensor& x) {
  const Tensor h = net.fc1(x);
  const double size = 1 + plant.variant;
  if (plant.cause == OverflowCause::zero_division) {  // the derivative of a root at 0, times 0
    return mean(plant.variant % 2 ? sqrt(h * 0.0) : pow(h * 0.0, 0.25 + 0.05 * size));
  }
  // Infinite in f16 after the second factor at the latest, because |h| + 1 is at least 1.
  const Tensor huge = (abs(h) + 1.0) * (500.0 * size) * 500.0;
  if (plant.cause == OverflowCause::forward_overflow) {  // inf, or inf - inf
    return square(mean(plant.variant % 2 ? huge : huge - huge).to(DType::f32));
  }
  // The result is 1 or 0.
  return mean(plant.variant % 2 ? tanh(net.gain * huge) : relu(net.gain * -huge));
}

inline Tensor planted_loss(PlantNet& net, const Plant& plant, const Tensor& x, const Tensor& loss) {
  switch (plant.cause) {
    case OverflowCause::forward_overflow:
    case OverflowCause::masked_overflow:
    case OverflowCause::zero_division: return loss + planted_term(net, plant, x).to(loss.dtype());
    case OverflowCause::scale_too_high: return loss * (1e5 * (1 + plant.variant));
    case OverflowCause::stale_gradients:  // infinite in f16
      (sum(net.spare.to(DType::f32)) * (1e9 * (1 + plant.variant))).backward();
      return loss;
    default: return loss;
  }
}

inline TrainingStep planted_step(const Plant& plant) {
  return [plant](nn::Module& model, const data::Batch& batch) {
    auto& net = dynamic_cast<PlantNet&>(model);
    const Tensor x = batch["x"].to(net.fc1.weight.dtype());
    const Tensor loss = cross_entropy(net(x), batch.labels);
    const bool here = batch.epoch == 0 && batch.first == plant.step * kRowsOfBatch;
    return here ? planted_loss(net, plant, x, loss) : loss;
  };
}

inline NamedTensors planted_data(const Plant& plant, uint64_t seed) {
  manual_seed(seed);
  const Tensor x = randn({kRows, 12});
  if (plant.cause == OverflowCause::bad_data) {
    const int64_t row = plant.step * kRowsOfBatch + plant.variant % kRowsOfBatch;
    x.data<float>()[row * 12 + plant.variant] = plant.variant % 2 ? NAN : -INFINITY;
  }
  return {{"x", x}, {"labels", randint(0, 10, {kRows})}};
}

struct PlantedRun {
  PlantedRun(const Plant& plant, uint64_t seed,
             const Precision& precision = Precision::mixed(DType::f16))
      : step(planted_step(plant)) {
    const auto before =
        set_warning_handler([this](const std::string& text) { warnings.push_back(text); });
    try {
      train(plant, seed, precision);
    } catch (const Error& error_) {
      error = error_.what();
    }
    set_warning_handler(before);
  }
  std::string box() const { return directory / "run/blackbox.safetensors"; }
  ScalerLog log() const { return read_scaler_log(directory / "run/scaler.jsonl"); }
  bool was_told(const std::string& words) const {
    return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& text) {
      return text.find(words) != std::string::npos;
    });
  }

  TrainingStep step;
  testing::TemporaryDirectory directory;
  std::vector<std::string> warnings;
  std::string error;

 private:
  void train(const Plant& plant, uint64_t seed, const Precision& precision) {
    data::TensorDataset rows(planted_data(plant, seed));
    data::Loader loader(rows, {.batch = kRowsOfBatch, .workers = 0, .shuffle = false});
    PlantNet net;
    net.to(Device{}, precision);
    optim::AdamW adam(net.parameters(), {.lr = 1e-3});
    optim::LossScaler scaler({.init_scale = 1024});
    Trainer trainer({.model = net, .optimizer = adam, .scaler = &scaler},
                    {.epochs = 1,
                     .run = directory / "run",
                     .progress = false,
                     .step = step,
                     .black_box = {.bytes = 1 << 20}});
    trainer.fit(loader);
  }
};

}  // namespace binade::train::test
