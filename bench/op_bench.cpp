// Benchmarks every op of the op table, forward and backward. The rows of tests/op_table are the
// benchmarks, so every op has one (op_table_closure checks it). Inputs are drawn as in the tests,
// with the sizes in OpRow::timed, else OpRow::large.
//
// bytes_per_second counts inputs and outputs once each; backward counts the inputs, the upstream
// gradients and the gradients. FLOP/s use OpRow::flops, or 2 OpRow::depth per output element for a
// contraction (twice that in backward), else one operation per element of the largest operand.
//
//     op_bench [--device cpu|cuda|emulated] [--benchmark_filter=^softmax/] [--benchmark_out=FILE]
#include <benchmark/benchmark.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/parallel.h>
#include <tests/kernels/support/test_device.h>
#include <tests/op_table/sample.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace binade {
namespace {

using op_table::OpRow;
using op_table::Sample;
using op_table::Tensors;

int failures = 0;

double bytes_of(const Tensors& tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) {
    bytes += t.defined() ? double(t.numel()) * double(size_of(t.dtype())) : 0;
  }
  return bytes;
}

double largest_of(const Tensors& tensors, double at_least = 0) {
  for (const Tensor& t : tensors) {
    at_least = std::max(at_least, t.defined() ? double(t.numel()) : 0);
  }
  return at_least;
}

const op_table::Shapes& sizes_of(const OpRow& row) {
  return row.timed.empty() ? row.large : row.timed;
}

Sample make_inputs(const OpRow& row, DType dtype) {
  const op_table::Shapes& shapes = sizes_of(row);
  OpRow timed = row;
  if (!row.timed_domains.empty()) {
    timed.domains = row.timed_domains;
  }
  return op_table::make_sample(timed, shapes, op_table::layout_choices(shapes)[0], dtype, 1);
}

// Keeps the inputs for the next call, since drawing them takes longer than most ops.
const Tensors& inputs_of(const OpRow& row, DType dtype) {
  static const OpRow* kept_row = nullptr;
  static DType kept_dtype = DType::f32;
  static Sample kept;
  if (kept_row != &row || kept_dtype != dtype) {
    kept = make_inputs(row, dtype);
    kept_row = &row;
    kept_dtype = dtype;
  }
  return kept.views;
}

double forward_flops(const OpRow& row, const Tensors& inputs, const Tensors& outputs) {
  if (row.flops) {
    return row.flops(sizes_of(row));
  }
  return row.depth ? 2.0 * double(row.depth(sizes_of(row))) * double(outputs[0].numel())
                   : largest_of(outputs, largest_of(inputs));
}

// Calls `step` as often as the clock needs, and reports the bytes and FLOPs of one call.
template <class F>
void measure(benchmark::State& state, double bytes, double flops, const F& step) {
  const Device device = kernels::test_device();
  synchronize(device);
  for (auto _ : state) {
    step();
    synchronize(device);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes * double(state.iterations())));
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void run_forward(benchmark::State& state, const OpRow& row, DType dtype) {
  const Tensors& inputs = inputs_of(row, dtype);
  const NoGradGuard guard;
  const Tensors outputs = row.function(inputs);
  measure(state, bytes_of(inputs) + bytes_of(outputs), forward_flops(row, inputs, outputs),
          [&] { benchmark::DoNotOptimize(row.function(inputs)); });
}

// The graph is reused, so the loop contains only backward; each call starts without gradients.
void run_backward(benchmark::State& state, const OpRow& row, DType dtype) {
  Tensors leaves, wanted;
  for (const Tensor& input : inputs_of(row, dtype)) {
    leaves.push_back(input.detach());
    const size_t i = leaves.size() - 1;
    if (is_floating(leaves[i].dtype()) && !op_table::domain_of(row, i).fixed) {
      wanted.push_back(leaves[i].require_grad());
    }
  }
  const Tensors outputs = row.function(leaves);
  const Tensors upstream = op_table::random_upstream(outputs, 2);
  std::vector<Seed> seeds;
  for (size_t i = 0; i < std::min(outputs.size(), row.outputs_with_gradient); ++i) {
    if (outputs[i].requires_grad()) {
      seeds.push_back({outputs[i], upstream[i]});
    }
  }
  const double flops = row.depth || row.flops ? 2 * forward_flops(row, leaves, outputs)
                                              : largest_of(outputs, largest_of(leaves));
  measure(state, bytes_of(leaves) + bytes_of(upstream) + bytes_of(wanted), flops, [&] {
    backward(seeds, {.retain_graph = true});
    for (const Tensor& leaf : wanted) {
      leaf.zero_grad();
    }
  });
}

using Run = void (*)(benchmark::State&, const OpRow&, DType);

void guarded(benchmark::State& state, const OpRow& row, DType dtype, Run run) {
  try {
    const op_table::AlgorithmGuard guard(row);
    run(state, row, dtype);
  } catch (const std::exception& error) {
    ++failures;
    std::fprintf(stderr, "%s: %s\n", row.name.c_str(), error.what());
    state.SkipWithError(error.what());
  }
}

// For example "softmax/dim_-1/f32/forward".
std::string name_of(const OpRow& row, DType dtype, const char* direction) {
  std::string name = row.name + (row.attributes.empty() ? "" : "/" + row.attributes);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name + "/" + to_string(dtype) + "/" + direction;
}

void add(const OpRow& row, DType dtype, const char* direction, Run run) {
  benchmark::RegisterBenchmark(
      name_of(row, dtype, direction).c_str(),
      [&row, dtype, run](benchmark::State& state) { guarded(state, row, dtype, run); })
      ->UseRealTime();
}

void add_all() {
  for (const OpRow& row : op_table::op_table()) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      add(row, dtype, "forward", run_forward);
      if (row.differentiable) {
        add(row, dtype, "backward", run_backward);
      }
    }
  }
}

// Removes --device X from the arguments and registers the benchmarks of the op table on X.
void choose_device(int& argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const bool two = std::strcmp(argv[i], "--device") == 0 && i + 1 < argc;
    const bool one = std::strncmp(argv[i], "--device=", 9) == 0;
    if (two || one) {
      setenv("BINADE_TEST_DEVICE", one ? argv[i] + 9 : argv[++i], 1);
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
}

}  // namespace
}  // namespace binade

int main(int argc, char** argv) {
  using namespace binade;
  try {
    choose_device(argc, argv);
    benchmark::AddCustomContext("device", to_string(kernels::test_device()));
    benchmark::AddCustomContext("isa", kernels::to_string(kernels::isa()));
    add_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
      return 1;
    }
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
