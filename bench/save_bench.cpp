// How long a step waits for a background checkpoint (TrainerOptions::async_save): the check for
// values that are not finite and the copy of weights and optimizer states, in turn with one memcpy
// of as many bytes. The counters are medians over the rounds: milliseconds of both, and their ratio
// in the same round. `first_ratio` is the first copy after reserve(). The argument is the width of
// the model; all threads of the machine are used.
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/linear.h>
#include <binade/optim/adamw.h>
#include <binade/train/background_saves_internal.h>
#include <binade/train/bad_loss_internal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

namespace binade {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <class F>
double milliseconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void save_wait(benchmark::State& state) {
  const int64_t width = state.range(0);
  nn::Linear model({.in = width, .out = width});
  optim::AdamW adam(model.parameters());
  sum(model(randn({2, width}))).backward();
  (void)adam.step();
  size_t bytes = 0;
  for (const NamedTensors& all : {model.state(), adam.state_tensors()}) {
    for (const auto& [name, tensor] : all) {
      bytes += static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype());
    }
  }
  const auto from = std::make_unique<char[]>(bytes), to = std::make_unique<char[]>(bytes);
  std::memset(from.get(), 1, bytes);
  std::memset(to.get(), 2, bytes);
  const auto parts = [&] {
    return train::StateParts{{"model", model.state()}, {"optimizer", adam.state_tensors()}};
  };
  train::BackgroundSaves saves;
  saves.reserve(parts());
  std::vector<double> plain, wait, ratio;
  int64_t step = 0;
  for (auto _ : state) {
    plain.push_back(milliseconds([&] {
      std::memcpy(to.get(), from.get(), bytes);
      benchmark::DoNotOptimize(to.get()[bytes / 2]);
    }));
    wait.push_back(milliseconds([&] {
      benchmark::DoNotOptimize(train::first_bad_tensor(model));
      benchmark::DoNotOptimize(saves.copy(++step, parts()));
    }));
    ratio.push_back(wait.back() / plain.back());
  }
  state.counters["state_mb"] = static_cast<double>(bytes) / 1e6;
  state.counters["memcpy_ms"] = median(plain);
  state.counters["wait_ms"] = median(wait);
  state.counters["ratio"] = median(ratio);
  state.counters["first_ratio"] = ratio.front();
}
BENCHMARK(save_wait)->Arg(512)->Arg(3000)->Iterations(31)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace binade
