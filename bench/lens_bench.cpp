// The cost of the exponent lens per training step. Steps without a lens, with an idle lens and with
// an active lens run in turn. A lens on every 10th step costs a tenth of an active step. The
// counters are medians over the rounds: milliseconds of CPU time of a step without a lens, and the
// extra time of the others in percent of the same round. `least` uses the fastest step of each kind
// instead, for busy machines. The argument is the number of threads.
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/train/lens.h>

#include <algorithm>
#include <ctime>

namespace binade {
namespace {

constexpr int kEvery = 10;

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
  train::Lens lens(model->parameters(), adam, {.every = 1, .file = "/dev/null"});
  const Tensor images = channels_last(randn({batch, 1, 28, 28}));
  const Tensor labels = empty({batch}, DType::i64);
  for (int64_t i = 0; i < batch; ++i) {
    labels.data<int64_t>()[i] = i % 10;
  }
  const auto seconds_of_step = [&](train::Lens* own) {
    const double start = now();
    if (own) {
      own->begin(1);  // an idle lens is active at step 0 only
    }
    scaler.scale(cross_entropy((*model)(images), labels)).backward();
    if (own) {
      own->before_update();
    }
    benchmark::DoNotOptimize(scaler.step(adam));
    if (own) {
      own->end();
    }
    return now() - start;
  };
  seconds_of_step(&lens);
  std::vector<double> plain, off, on, off_percent, on_percent;
  for (auto _ : state) {
    plain.push_back(seconds_of_step(nullptr));
    off.push_back(seconds_of_step(&idle));
    on.push_back(seconds_of_step(&lens));
    off_percent.push_back(100 * (off.back() / plain.back() - 1));
    on_percent.push_back(100 * (on.back() / plain.back() - 1) / kEvery);
  }
  const auto least = [](const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
  };
  state.counters["step_cpu_ms"] = 1e3 * median(plain);
  state.counters["off_percent"] = median(off_percent);
  state.counters["every_10_percent"] = median(on_percent);
  state.counters["least_off_percent"] = 100 * (least(off) / least(plain) - 1);
  state.counters["least_every_10_percent"] = 100 * (least(on) / least(plain) - 1) / kEvery;
  kernels::set_threads(0);
}

const bool kRegistered = [] {
  const std::pair<const char*, Precision> all[] = {{"cnn_fp32", Precision::full()},
                                                   {"cnn_fp16", Precision::mixed(DType::f16)}};
  for (const auto& one : all) {
    benchmark::RegisterBenchmark(one.first, lens_cost, one.second)
        ->Arg(1)
        ->Arg(2)
        ->Iterations(100)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace binade
