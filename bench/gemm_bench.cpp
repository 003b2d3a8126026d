// CPU matrix products by kind, shape, dtype and threads. NT is the forward of a linear layer (m
// samples or tokens, n outputs, k inputs), TN the gradient of its weight, NN the gradient of its
// input. bench/peers/gemm.py compares the f32 lines with PyTorch. BINADE_GEMM=eigen times Eigen.
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/gemm/gemm.h>

#include <string>

namespace binade {
namespace {

struct Product {
  bool a_transposed, b_transposed;
  int64_t m, n, k;
};

void run(benchmark::State& state, const Product& p, DType dtype) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    return transposed ? transpose(randn({columns, rows}).to(dtype), 0, 1)
                      : randn({rows, columns}).to(dtype);
  };
  const Tensor a = matrix(p.m, p.k, p.a_transposed), b = matrix(p.k, p.n, p.b_transposed);
  const Tensor y = empty({p.m, p.n}, dtype);
  for (auto _ : state) {
    kernels::gemm({.a = a, .b = b, .y = y});
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * static_cast<double>(p.m) * static_cast<double>(p.n * p.k),
                         benchmark::Counter::kIsIterationInvariantRate);
  kernels::set_threads(0);
}

void add(const Product& p) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::string name = std::string(p.a_transposed ? "T" : "N") +
                             (p.b_transposed ? "T/" : "N/") + std::to_string(p.m) + "x" +
                             std::to_string(p.n) + "x" + std::to_string(p.k) + "/" +
                             to_string(dtype);
    benchmark::RegisterBenchmark(name.c_str(), run, p, dtype)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

const bool kRegistered = [] {
  struct Layer {
    int64_t samples, outputs, inputs;
  };
  for (const Layer& l :
       {Layer{64, 512, 784}, Layer{64, 512, 512}, Layer{64, 10, 512}, Layer{64, 128, 784},
        Layer{64, 10, 128}, Layer{256, 128, 784}, Layer{256, 1024, 1024}, Layer{2048, 128, 128},
        Layer{2048, 384, 128}, Layer{2048, 512, 128}, Layer{2048, 128, 512}}) {
    add({false, true, l.samples, l.outputs, l.inputs});
    add({false, false, l.samples, l.inputs, l.outputs});
    add({true, false, l.outputs, l.inputs, l.samples});
  }
  for (const int64_t side : {32, 64, 128, 256, 512, 1024}) {
    add({false, false, side, side, side});
    add({false, true, side, side, side});
    add({true, false, side, side, side});
  }
  return true;
}();

}  // namespace
}  // namespace binade
