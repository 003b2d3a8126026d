// Regression on a table: --data FILE.csv with the column --target, all others numbers; or
// Friedman's function of ten numbers, of which five count, with noise.
#include <binade/binade.h>
#include <binade/train/flags.h>

#include <cstdio>

using namespace binade;

namespace {

// "x" [rows, 10], "y" [rows, 1]: 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5 + noise
data::TensorDataset friedman(int64_t rows) {
  const Tensor x = rand({rows, 10});
  const auto column = [&](int64_t i) { return narrow(x, 1, i, 1); };
  const Tensor curve = column(2) - 0.5;
  const Tensor y = sin(column(0) * column(1) * 3.14159265) * 10 + curve * curve * 20 +
                   column(3) * 10 + column(4) * 5 + randn({rows, 1});
  return data::TensorDataset({{"x", x}, {"y", y}});
}

// Normalises its input by the mean and deviation of the training data.
struct Net : nn::Module {
  Net(const Tensor& x, const Tensor& y, int64_t hidden)
      : mean(*this, "mean", binade::mean(x, {0})),
        deviation(*this, "deviation", clamp(binade::std(x, {0}), 1e-6)),
        y_mean(*this, "y_mean", binade::mean(y, {0})),
        y_deviation(*this, "y_deviation", clamp(binade::std(y, {0}), 1e-6)),
        mlp(*this, "mlp", {.in = x.size(1), .hidden = {hidden, hidden}, .classes = y.size(1)}) {}
  Tensor forward(const Tensor& x) override {
    return mlp((x - mean) / deviation).to(DType::f32) * y_deviation + y_mean;
  }

  nn::Buffer mean, deviation, y_mean, y_deviation;
  nn::MLP mlp;
};

void run(const train::RunFlags& flags, const std::string& target, int64_t hidden) {
  std::shared_ptr<const data::Dataset> table;
  if (flags.data.empty()) {
    table = std::make_shared<data::TensorDataset>(friedman(2000));
  } else {
    check(!target.empty(), "--target: got none, expected the name of a column of ", flags.data);
    table = std::make_shared<data::CsvDataset>(flags.data, data::CsvOptions{.targets = {target}});
  }
  const data::Split parts = data::split(table, {.share = 0.2, .seed = flags.seed});
  data::Loader train_loader(parts.first, {.batch = flags.batch, .seed = flags.seed});
  data::Loader validation_loader(parts.second, {.batch = 256, .shuffle = false});
  data::Loader all(parts.first, {.batch = parts.first->size(), .shuffle = false});
  data::Batch whole;
  all.epoch(0);
  check(all.next(whole), "got no training rows");

  Net net(whole["x"], whole["y"], hidden);
  net.to(flags.target(), flags.policy());
  optim::AdamW adam(net.parameters(), {.lr = flags.lr, .weight_decay = 1e-3});
  train::TrainerOptions options = flags.trainer_options();
  options.monitor = "validation_rmse";
  options.patience = 20;
  options.metrics = {train::RootMeanSquaredError({.target = "y"}),
                     train::MeanAbsoluteError({.target = "y"}), train::R2({.target = "y"})};
  options.step = [](Net& model, const data::Batch& batch) -> train::StepOutput {
    const Tensor y = model(batch["x"]);
    return {.loss = mse_loss(y, batch["y"]), .output = y};
  };
  train::Trainer trainer({.model = net, .optimizer = adam}, options);
  flags.fit(trainer, train_loader, &validation_loader);
  trainer.save_model();
  const train::Evaluation result = trainer.validate(validation_loader);
  std::printf("validation rmse: %.4f, mae: %.4f, r2: %.4f\n", result["rmse"], result["mae"],
              result["r2"]);
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("regression", "Fits a network to a table of numbers.",
                         {.epochs = 200, .batch = 64, .lr = 3e-3});
  std::string target;
  int64_t hidden = 64;
  program.add("--target", target, "the column of --data to predict");
  program.add("--hidden", hidden, "size of the two hidden layers", {1, 1 << 16});
  return program.run(argc, argv,
                     [&](const train::RunFlags& flags) { return run(flags, target, hidden); });
}
