// The overhead of an op: allocation, recording, backward, destruction. Tensors have one element, so
// arithmetic takes almost no time. Times are per op ("per_op"), on one thread. bench/RESULTS.md has
// the command and results.
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>
#include <binade/optim/sgd.h>

#include <vector>

namespace binade {
namespace {

// Reports seconds per op as a counter.
void set_per_op(benchmark::State& state, int64_t ops) {
  state.counters["per_op"] =
      benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsIterationInvariantRate |
                                                       benchmark::Counter::kInvert);
}

Tensor chain(const Tensor& x, const Tensor& one, int64_t length) {
  Tensor y = x;
  for (int64_t i = 0; i < length; ++i) {
    y = y + one;
  }
  return y;
}

void add_without_gradient(benchmark::State& state) {
  const Tensor a = full({1}, 1), b = full({1}, 2);
  for (auto _ : state) {
    benchmark::DoNotOptimize(a + b);
  }
  set_per_op(state, 1);
}
BENCHMARK(add_without_gradient);

void broadcast_without_gradient(benchmark::State& state) {
  const Tensor a = full({1, 1}, 1), b = full({1}, 2);
  for (auto _ : state) {
    benchmark::DoNotOptimize(a + b);
  }
  set_per_op(state, 1);
}
BENCHMARK(broadcast_without_gradient);

void relu_without_gradient(benchmark::State& state) {
  const Tensor a = full({1}, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(relu(a));
  }
  set_per_op(state, 1);
}
BENCHMARK(relu_without_gradient);

void sum_without_gradient(benchmark::State& state) {
  const Tensor a = full({1}, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(sum(a));
  }
  set_per_op(state, 1);
}
BENCHMARK(sum_without_gradient);

void add_recorded(benchmark::State& state) {
  const Tensor a = full({1}, 1).require_grad(), b = full({1}, 2);
  for (auto _ : state) {
    benchmark::DoNotOptimize(a + b);
  }
  set_per_op(state, 1);
}
BENCHMARK(add_recorded);

void mul_recorded(benchmark::State& state) {  // saves both inputs
  const Tensor a = full({1}, 1).require_grad(), b = full({1}, 2).require_grad();
  for (auto _ : state) {
    benchmark::DoNotOptimize(a * b);
  }
  set_per_op(state, 1);
}
BENCHMARK(mul_recorded);

void relu_recorded(benchmark::State& state) {  // saves its result
  const Tensor a = full({1}, 1).require_grad();
  for (auto _ : state) {
    benchmark::DoNotOptimize(relu(a));
  }
  set_per_op(state, 1);
}
BENCHMARK(relu_recorded);

void view_recorded(benchmark::State& state) {
  const Tensor a = full({1, 1}, 1).require_grad();
  for (auto _ : state) {
    benchmark::DoNotOptimize(a.transpose(0, 1));
  }
  set_per_op(state, 1);
}
BENCHMARK(view_recorded);

void chain_forward(benchmark::State& state) {
  const int64_t length = state.range(0);
  const Tensor x = full({1}, 1).require_grad(), one = full({1}, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(chain(x, one, length));
  }
  set_per_op(state, length);
}
BENCHMARK(chain_forward)->Arg(100);

void chain_forward_backward(benchmark::State& state) {
  const int64_t length = state.range(0);
  const Tensor x = full({1}, 1).require_grad(), one = full({1}, 1);
  for (auto _ : state) {
    chain(x, one, length).backward();
  }
  set_per_op(state, length);
}
BENCHMARK(chain_forward_backward)->Arg(100);

void deep_backward(benchmark::State& state) {
  const int64_t length = state.range(0);
  const Tensor x = full({1}, 1).require_grad(), one = full({1}, 1);
  for (auto _ : state) {
    state.PauseTiming();
    const Tensor y = chain(x, one, length);
    state.ResumeTiming();
    y.backward();
  }
  set_per_op(state, length);
}
BENCHMARK(deep_backward)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void deep_destruction(benchmark::State& state) {
  const int64_t length = state.range(0);
  const Tensor x = full({1}, 1).require_grad(), one = full({1}, 1);
  for (auto _ : state) {
    state.PauseTiming();
    Tensor y = chain(x, one, length);
    state.ResumeTiming();
    y = Tensor();
  }
  set_per_op(state, length);
}
BENCHMARK(deep_destruction)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// A step with one sample: forward, loss, backward, update. Times are per layer.
void mlp_step(benchmark::State& state) {
  constexpr int64_t kLayers = 10, kWidth = 64;
  nn::MLP model(
      {.in = kWidth, .hidden = std::vector<int64_t>(kLayers - 1, kWidth), .classes = kWidth});
  optim::SGD sgd(model.parameters(), {.lr = 1e-3});
  const Tensor x = randn({1, kWidth}), target = randn({1, kWidth});
  for (auto _ : state) {
    sgd.zero_grad();
    mse_loss(model(x), target).backward();
    static_cast<void>(sgd.step());
  }
  set_per_op(state, kLayers);
}
BENCHMARK(mlp_step);

}  // namespace
}  // namespace binade
