// One training step by precision: forward, loss, backward and AdamW on one batch. Classifiers of
// images, and the char-GPT of bench/peers on 16 texts of 128 characters.
// The argument is the number of threads. bench/RESULTS.md says how to run it and what it gave.
#include <bench/peers/models.h>
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>

#include <string>

namespace binade {
namespace {

struct Work {
  const char* model;
  int64_t batch, channels, side;  // the side of images, the length of texts
  Precision precision;
};

Tensor classes(const Dims& sizes, int64_t count) {
  const Tensor all = empty(sizes, DType::i64);
  for (int64_t i = 0; i < all.numel(); ++i) {
    all.data<int64_t>()[i] = i % count;
  }
  return all;
}

void train_step(benchmark::State& state, const Work& work) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  manual_seed(0);
  const bool text = std::string(work.model) == "char_gpt";
  std::unique_ptr<nn::Module> model;
  if (text) {
    model = std::make_unique<peers::CharGPT>();
  } else {
    model = nn::make_model(work.model, {work.channels, work.side, work.side, 10});
  }
  model->to({}, work.precision);
  optim::AdamW adam(model->parameters());
  optim::LossScaler scaler;
  const Tensor inputs =
      text ? classes({work.batch, work.side}, 65)
           : channels_last(randn({work.batch, work.channels, work.side, work.side}));
  const Tensor labels = text ? classes({work.batch * work.side}, 65) : classes({work.batch}, 10);
  for (auto _ : state) {
    scaler.scale(cross_entropy((*model)(inputs), labels)).backward();
    benchmark::DoNotOptimize(scaler.step(adam));
  }
  state.SetItemsProcessed(state.iterations() * work.batch);
  kernels::set_threads(0);
}

void add(const std::string& name, const Work& work) {
  benchmark::RegisterBenchmark(name.c_str(), train_step, work)
      ->Arg(1)
      ->Arg(2)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

const bool kRegistered = [] {
  struct Named {
    const char* name;
    Precision precision;
  };
  const Named precisions[] = {{"_fp32", Precision::full()},
                              {"_fp16", Precision::mixed(DType::f16)},
                              {"_bf16", Precision::mixed(DType::bf16)},
                              {"_fp16_autocast", Precision::autocast(DType::f16)},
                              {"_bf16_autocast", Precision::autocast(DType::bf16)}};
  for (const Named& one : precisions) {
    add(std::string("mnist_cnn") + one.name, {"cnn", 64, 1, 28, one.precision});
    add(std::string("mlp") + one.name, {"mlp", 64, 1, 28, one.precision});
    add(std::string("resnet18") + one.name, {"resnet18", 32, 3, 32, one.precision});
    add(std::string("char_gpt") + one.name, {"char_gpt", 16, 1, 128, one.precision});
  }
  return true;
}();

}  // namespace
}  // namespace binade
