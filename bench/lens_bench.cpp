// What the exponent lens costs a training step: blocks of ten steps without a lens, with one that
// is not looking, and with one that looks at the first of them, in turn. The counters are medians
// over the rounds: milliseconds of processor time of a step without a lens, and what the others add
// to it in percent of the round's own. Processor time, so that other work on the machine counts
// little. The argument is the number of threads.
#include <benchmark/benchmark.h>
#include <binade/core/create.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/parallel.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/train/lens.h>

#include <algorithm>
#include <ctime>

namespace binade {
namespace {

constexpr int kBlock = 10;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void lens_cost(benchmark::State& state, Precision precision) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  manual_seed(0);
  const int64_t batch = 64;
  auto model = nn::make_model("cnn", {1, 28, 28, 10});
  model->to({}, precision);
  optim::AdamW adam(model->parameters());
  optim::LossScaler scaler;
  train::Lens idle(model->parameters(), adam, {.every = 1 << 30});
  train::Lens lens(model->parameters(), adam, {.every = kBlock, .file = "/dev/null"});
  const Tensor images = channels_last(randn({batch, 1, 28, 28}));
  const Tensor labels = empty({batch}, DType::i64);
  for (int64_t i = 0; i < batch; ++i) {
    labels.data<int64_t>()[i] = i % 10;
  }
  const auto seconds_of_block = [&](train::Lens* own) {
    const double start = now();
    for (int step = 1; step <= kBlock; ++step) {  // the idle one looks at step 0 only
      if (own) {
        own->begin(step);
      }
      scaler.scale(cross_entropy((*model)(images), labels)).backward();
      if (own) {
        own->before_update();
      }
      benchmark::DoNotOptimize(scaler.step(adam));
      if (own) {
        own->end();
      }
    }
    return now() - start;
  };
  seconds_of_block(&lens);
  std::vector<double> plain, off, on;
  for (auto _ : state) {
    const double without = seconds_of_block(nullptr);
    plain.push_back(1e3 * without / kBlock);
    off.push_back(100 * (seconds_of_block(&idle) / without - 1));
    on.push_back(100 * (seconds_of_block(&lens) / without - 1));
  }
  state.counters["step_cpu_ms"] = median(plain);
  state.counters["off_percent"] = median(off);
  state.counters["every_10_percent"] = median(on);
  kernels::set_threads(0);
}

const bool kRegistered = [] {
  const std::pair<const char*, Precision> all[] = {{"cnn_fp32", Precision::full()},
                                                   {"cnn_fp16", Precision::mixed(DType::f16)}};
  for (const auto& one : all) {
    benchmark::RegisterBenchmark(one.first, lens_cost, one.second)
        ->Arg(1)
        ->Arg(2)
        ->Iterations(15)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace binade
