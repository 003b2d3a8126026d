// The Trainer on a device: the host does not wait during an epoch, and its steps become one graph
// that computes the same as plain steps.
#include "device_fixture.h"

#include <binade/binade.h>
#include <tests/data/fake_dataset.h>
#include <tests/support/temporary_directory.h>

namespace binade::trainer_test {
namespace {

using TrainerOnDeviceTest = DeviceTest;

// A network over pixels, half its activations dropped.
class SmallModel : public nn::Module {
 public:
  SmallModel() : first({.in = 48, .out = 16}), second({.in = 16, .out = 10}), dropout({.p = 0.5}) {
    register_module("first", first);
    register_module("second", second);
    register_module("dropout", dropout);
  }
  Tensor forward(const Tensor& x) override {
    return second(dropout(relu(first(flatten(x.to(first.weight.dtype()), 1)))));
  }
  nn::Linear first, second;
  nn::Dropout dropout;
};

struct Outcome {
  std::vector<double> numbers = {};  // weights, scale, steps, rates
  int64_t replays = 0, waits = 0, steps = 0;
  double position = 0;
  std::string why_no_graph;
};

Outcome train(int64_t samples, train::TrainerOptions options) {
  manual_seed(7);
  SmallModel model;
  model.to(kDevice, Precision::mixed(DType::f16));
  optim::AdamW adam(model.parameters(), {.lr = 0.01});
  // The first scales overflow.
  optim::LossScaler scaler({.init_scale = 0x1p22, .growth_interval = 5});
  optim::OneCycleLR schedule(adam, {.max_lr = 0.02, .total_steps = 40});
  options.progress = false;
  train::Trainer trainer(
      {.model = model, .optimizer = adam, .scaler = &scaler, .schedule = &schedule},
      std::move(options));
  const data::test::FakeDataset pictures(samples);
  data::Loader loader(pictures, {.batch = 8, .workers = 0, .seed = 3, .device = kDevice});
  const WaitCounter waits;
  trainer.fit(loader);
  Outcome out{.replays = trainer.graph_replays(),
              .waits = waits.count(),
              .steps = trainer.steps(),
              .position = static_cast<double>(schedule.step()),
              .why_no_graph = trainer.why_no_graph()};
  out.numbers = {scaler.scale(), static_cast<double>(scaler.skipped_steps()), out.position,
                 adam.lr(), adam.momentum()};
  for (const auto& [name, tensor] : model.state()) {
    const Tensor values = tensor.to(Device{});
    for (int64_t i = 0; i < values.numel(); ++i) {
      out.numbers.push_back(values.at(i));
    }
  }
  EXPECT_GT(scaler.skipped_steps(), 0);
  EXPECT_EQ(out.position, static_cast<double>(out.steps - scaler.skipped_steps()));
  return out;
}

constexpr train::StepGraph kModes[] = {train::StepGraph::off, train::StepGraph::automatic};

TEST_F(TrainerOnDeviceTest, NobodyWaitsWithinAnEpoch) {
  for (train::StepGraph mode : kModes) {
    const Outcome few = train(48, {.epochs = 1, .graph = mode});
    const Outcome many = train(160, {.epochs = 1, .graph = mode});
    EXPECT_EQ(many.steps, 20);
    EXPECT_EQ(few.waits, many.waits);
  }
}

TEST_F(TrainerOnDeviceTest, AGraphComputesWhatPlainStepsCompute) {
  // 84 samples: the last batch of an epoch is incomplete and is not replayed.
  const train::TrainerOptions options{.epochs = 3, .clip_norm = 1};
  train::TrainerOptions plain = options;
  plain.graph = train::StepGraph::off;
  const Outcome a = train(84, options), b = train(84, plain);
  EXPECT_EQ(a.numbers, b.numbers);
  EXPECT_EQ(a.steps, 33);
  EXPECT_EQ(a.replays, 28);  // of 30 full batches the first two are plain
  EXPECT_EQ(a.why_no_graph, "");
  EXPECT_EQ(b.replays, 0);
  EXPECT_EQ(b.why_no_graph, "they are switched off");
}

TEST_F(TrainerOnDeviceTest, SaysWhyThereIsNoGraph) {
  const auto why = [](train::TrainerOptions options, int64_t samples = 48) {
    const Outcome out = train(samples, std::move(options));
    EXPECT_EQ(out.replays, 0);
    return out.why_no_graph;
  };
  EXPECT_EQ(why({.epochs = 2, .accumulate = 2}), "gradients accumulate over 2 micro-batches");
  EXPECT_EQ(why({.epochs = 8}, 5), "no batch is full");
  const train::TrainingStep own = [](nn::Module& model, const data::Batch& batch) {
    return train::classification_step(model, batch).loss;
  };
  EXPECT_NE(why({.epochs = 1, .step = own}).find("not the Trainer's own"), std::string::npos);
  EXPECT_EQ(train(48, {.epochs = 1, .step = own, .graph = train::StepGraph::on}).replays, 4);
  const train::TrainingStep reads = [](nn::Module& model, const data::Batch& batch) {
    Tensor loss = train::classification_step(model, batch).loss;
    EXPECT_GT(loss.item(), 0);
    return loss;
  };
  const Outcome read = train(48, {.epochs = 1, .step = reads, .graph = train::StepGraph::on});
  EXPECT_NE(read.why_no_graph, "");
  EXPECT_EQ(read.numbers, train(48, {.epochs = 1}).numbers);
}

// Log values, outputs and fields of any name, plain and replayed.
TEST_F(TrainerOnDeviceTest, ReplaysNamedFieldsAndLogValues) {
  const auto run = [](train::StepGraph graph, int64_t* replays) {
    manual_seed(7);
    const Tensor x = randn({48, 3});
    const data::TensorDataset rows({{"x", x}, {"y", sum(x, {1}, true)}});
    data::Loader loader(rows, {.batch = 8, .workers = 0, .device = kDevice});
    nn::Linear model({.in = 3, .out = 1});
    std::string outputs;
    train::Trainer trainer(
        {.model = model,
         .optimizer =
             [](const ParameterList& parameters) {
               return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.1});
             },
         .ema = train::EmaOptions{.decay = 0.5}},
        {.epochs = 3,
         .progress = false,
         .step = [](auto& net, const data::Batch& batch) -> train::StepOutput {
           const Tensor p = net(batch["x"]);
           return {.loss = mse_loss(p, batch["y"]),
                   .output = p,
                   .log = {{"error", l1_loss(p, batch["y"])}, {"one", 1}},
                   .outputs = {{"double", p * 2.0}}};
         },
         .metrics = {train::MeanAbsoluteError({.target = "y"})},
         .callbacks = {{.step =
                            [&](const train::RunView& view) {
                              outputs += text(view.output->outputs[0].second.to(Device{}).at(0),
                                              " ", view.output->loss.item(), " ");
                            }}},
         .log_every = 1,
         .log_norms = true,
         .device = kDevice,
         .graph = graph});
    trainer.fit(loader, &loader);
    *replays = trainer.graph_replays();
    for (const auto& [name, value] : trainer.values()) {
      outputs += name == "samples_per_second" ? "" : text(name, " ", value, " ");
    }
    return outputs;
  };
  int64_t plain = 0, replayed = 0;
  EXPECT_EQ(run(train::StepGraph::off, &plain), run(train::StepGraph::on, &replayed));
  EXPECT_EQ(plain, 0);
  EXPECT_EQ(replayed, 16);
}

// Two optimizers take turns, with loss scalers: a device computes what the CPU computes.
TEST_F(TrainerOnDeviceTest, PhasesTakeTurns) {
  const auto run = [](Device device) {
    manual_seed(7);
    const Tensor x = randn({40, 3});
    const data::TensorDataset rows({{"x", x}, {"y", sum(x, {1}, true)}});
    data::Loader loader(rows, {.batch = 8, .workers = 0, .seed = 2, .device = device});
    struct Net : nn::Module {
      nn::Linear first{*this, "first", {.in = 3, .out = 4}};
      nn::Linear last{*this, "last", {.in = 4, .out = 1}};
      Tensor forward(const Tensor& x) override { return last(tanh(first(x))); }
    } model;
    model.to(device, Precision::full());
    optim::SGD first(model.first.parameters(), {.lr = 0.05}),
        last(model.last.parameters(), {.lr = 0.05});
    optim::LossScaler scaler;
    const auto step = [](nn::Module& net, const data::Batch& batch) {
      return mse_loss(net(batch["x"]), batch["y"]);
    };
    train::Trainer trainer(
        {.model = model,
         .phases = {{.name = "first", .optimizer = first, .step = step, .scaler = &scaler},
                    {.name = "last", .optimizer = last, .step = step, .every = 2}}},
        {.epochs = 2, .progress = false, .validation_step = step});
    trainer.fit(loader, &loader);
    EXPECT_EQ(first.step_count(), 10);
    EXPECT_EQ(last.step_count(), 5);
    EXPECT_EQ(trainer.why_no_graph(),
              device.is_cpu() ? "on the CPU there are none" : "a step has several phases");
    return trainer.validate(loader).loss;
  };
  EXPECT_NEAR(run(kDevice), run(Device{}), 1e-5);
}

TEST_F(TrainerOnDeviceTest, ResumesBitIdentically) {
  const binade::testing::TemporaryDirectory directory;
  const Outcome whole = train(84, {.epochs = 4});
  const std::string run = directory.path() + "/run";
  (void)train(84, {.epochs = 2, .run = run});
  const Outcome resumed = train(84, {.epochs = 4, .run = run, .resume = true});
  EXPECT_EQ(resumed.steps, 44);
  EXPECT_EQ(resumed.numbers, whole.numbers);
}

}  // namespace
}  // namespace binade::trainer_test
