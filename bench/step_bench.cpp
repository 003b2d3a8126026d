// One training step of a classifier by precision: forward, loss, backward and AdamW on one batch.
// The argument is the number of threads. bench/RESULTS.md says how to run it and what it gave.
#include <benchmark/benchmark.h>
#include <binade/core/create.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/parallel.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>

namespace binade {
namespace {

struct Work {
  const char* model;
  int64_t batch, channels, side;
  Precision precision;
};

void train_step(benchmark::State& state, const Work& work) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  manual_seed(0);
  auto model = nn::make_model(work.model, {work.channels, work.side, work.side, 10});
  model->to({}, work.precision);
  optim::AdamW adam(model->parameters());
  optim::LossScaler scaler;
  const Tensor images = channels_last(randn({work.batch, work.channels, work.side, work.side}));
  const Tensor labels = empty({work.batch}, DType::i64);
  for (int64_t i = 0; i < work.batch; ++i) {
    labels.data<int64_t>()[i] = i % 10;
  }
  for (auto _ : state) {
    scaler.scale(cross_entropy((*model)(images), labels)).backward();
    benchmark::DoNotOptimize(scaler.step(adam));
  }
  state.SetItemsProcessed(state.iterations() * work.batch);
  kernels::set_threads(0);
}

void add(const char* name, const Work& work) {
  benchmark::RegisterBenchmark(name, train_step, work)
      ->Arg(1)
      ->Arg(2)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

const bool kRegistered = [] {
  const Precision fp32 = Precision::full(), fp16 = Precision::mixed(DType::f16);
  add("mnist_cnn_fp32", {"cnn", 64, 1, 28, fp32});
  add("mnist_cnn_fp16", {"cnn", 64, 1, 28, fp16});
  add("mnist_cnn_bf16", {"cnn", 64, 1, 28, Precision::mixed(DType::bf16)});
  add("mlp_fp32", {"mlp", 64, 1, 28, fp32});
  add("mlp_fp16", {"mlp", 64, 1, 28, fp16});
  add("resnet18_fp32", {"resnet18", 32, 3, 32, fp32});
  add("resnet18_fp16", {"resnet18", 32, 3, 32, fp16});
  return true;
}();

}  // namespace
}  // namespace binade
