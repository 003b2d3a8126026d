// One training step by precision: forward, loss, backward and the update on one batch.
//
// With --model, it times one model on any device (step_one.h):
//   step_bench --model gpt2 --device cuda --precision fp16 --batch 8 --json
// Without it, small models on the CPU by Google Benchmark; the argument is the number of threads:
//   step_bench --benchmark_filter=mlp
//
// bench/RESULTS.md has the commands and results.
#include <bench/step_one.h>
#include <bench/step_work.h>
#include <benchmark/benchmark.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>
#include <cstring>

using namespace binade;

namespace {

void train_step(benchmark::State& state, const bench::StepSettings& settings) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  {
    bench::StepWork work(settings);
    for (auto _ : state) {
      benchmark::DoNotOptimize(work.step());
    }
    state.SetItemsProcessed(state.iterations() * work.batch());
  }
  kernels::set_threads(0);
}

void register_small_models() {
  struct Named {
    const char* name;
    Precision precision;
  };
  const Named precisions[] = {{"_fp32", Precision::full()},
                              {"_fp16", Precision::mixed(DType::f16)},
                              {"_bf16", Precision::mixed(DType::bf16)},
                              {"_fp16_autocast", Precision::autocast(DType::f16)},
                              {"_bf16_autocast", Precision::autocast(DType::bf16)}};
  struct Small {
    const char *name, *model;
    int64_t batch, image, classes;
  };
  const Small works[] = {{"mnist_cnn", "cnn", 64, 0, 0},
                         {"mlp", "mlp", 64, 0, 0},
                         {"resnet18", "resnet18", 32, 32, 10},
                         {"char_gpt", "char_gpt", 16, 0, 0}};
  for (const Named& one : precisions) {
    for (const Small& work : works) {
      bench::StepSettings settings;
      settings.model = work.model;
      settings.precision = one.precision;
      settings.batch = work.batch;
      settings.image = work.image;
      settings.classes = work.classes;
      const std::string name = std::string(work.name) + one.name;
      benchmark::RegisterBenchmark(name.c_str(), train_step, settings)
          ->Arg(1)
          ->Arg(2)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

bool names_a_model(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::strncmp(argument, "--model", 7) == 0 || std::strcmp(argument, "--help") == 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (names_a_model(argc, argv)) {
    return bench::run_step_model(argc, argv);
  }
  register_small_models();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
