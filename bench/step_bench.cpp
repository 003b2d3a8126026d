// One training step by precision: forward, loss, backward and the update on one batch.
//
//   step_bench --model gpt2 --device cuda --precision fp16 --batch 8 --json   # one model, any
//   device step_bench --benchmark_filter=mlp     # without --model: small models on the CPU, by
//   Google
//                                         # Benchmark; the argument is the number of threads
//
// bench/RESULTS.md says how it was run and what it gave.
#include <bench/step_work.h>
#include <benchmark/benchmark.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/memory.h>
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace binade;

namespace {

// Small models on the CPU ------------------------------------------------------------------------

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

// One model --------------------------------------------------------------------------------------

struct Flags {
  bench::StepSettings settings;
  std::string device = "auto", precision = "fp32";
  int64_t samples = 5, steps = 4, warmup = 4;
  int threads = 0;
  bool json = false;
};

struct Memory {
  int64_t allocated, peak, reserved;
};
Memory memory_of(Device device) {
  if (device.is_cpu()) {
    const MemoryStats stats = memory_stats();
    return {stats.allocated, stats.peak, stats.reserved};
  }
  const DeviceMemoryStats stats = memory_stats(device);
  return {stats.allocated, stats.peak, stats.reserved};
}
void reset_peak(Device device) {
  device.is_cpu() ? reset_peak_memory() : reset_peak_memory(device);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  std::vector<double> milliseconds;  // per step, sorted
  double first_loss, last_loss;
  double at(double q) const {
    return milliseconds[static_cast<size_t>(q * double(milliseconds.size() - 1) + 0.5)];
  }
};

// A sample is so many steps between two waits for the device, as in a training that reads nothing.
Times time_steps(bench::StepWork& work, const Flags& flags) {
  Times times{.milliseconds = {}, .first_loss = work.step().item(), .last_loss = 0};
  for (int64_t i = 1; i < flags.warmup; ++i) {
    work.step();
  }
  synchronize(flags.settings.device);
  reset_peak(flags.settings.device);
  Tensor loss;
  for (int64_t sample = 0; sample < flags.samples; ++sample) {
    const double start = now();
    for (int64_t i = 0; i < flags.steps; ++i) {
      loss = work.step();
    }
    synchronize(flags.settings.device);
    times.milliseconds.push_back(1e3 * (now() - start) / double(flags.steps));
  }
  times.last_loss = loss.item();
  std::ranges::sort(times.milliseconds);
  return times;
}

// JSON has no NaN.
std::string json_number(double value) { return std::isfinite(value) ? text(value) : "null"; }

std::string json_of(const Flags& flags, const bench::StepWork& work, const Times& times) {
  const bench::StepSettings& s = flags.settings;
  const bool is_text = bench::is_text_model(s.model);
  const double per_second = 1e3 * double(work.batch()) / times.at(0.5);
  const Memory memory = memory_of(s.device);
  return text(
      "{\"model\": ", json_quoted(s.model), ", \"device\": ", json_quoted(to_string(s.device)),
      ", \"precision\": ", json_quoted(flags.precision),
      ", \"pass\": ", json_quoted(s.forward ? "forward" : "step"),
      ", \"optimizer\": ", json_quoted(s.optimizer), ", \"graph_replays\": ", work.replays(),
      ", \"batch\": ", work.batch(), ", \"", is_text ? "tokens" : "image", "\": ", work.length(),
      ", \"parameters\": ", work.parameter_count(), ", \"threads\": ", kernels::threads(),
      ", \"samples\": ", flags.samples, ", \"steps\": ", flags.steps,
      ", \"milliseconds\": ", times.at(0.5), ", \"fastest_milliseconds\": ", times.at(0),
      ", \"spread_milliseconds\": ", times.at(0.75) - times.at(0.25),
      ", \"samples_per_second\": ", per_second,
      is_text ? text(", \"tokens_per_second\": ", per_second * double(work.length())) : "",
      ", \"allocated_bytes\": ", memory.allocated, ", \"peak_bytes\": ", memory.peak,
      ", \"reserved_bytes\": ", memory.reserved,
      ", \"first_loss\": ", json_number(times.first_loss),
      ", \"last_loss\": ", json_number(times.last_loss),
      ", \"skipped_steps\": ", work.skipped_steps(), "}");
}

void print_line(const Flags& flags, const bench::StepWork& work, const Times& times) {
  std::printf(
      "%s %s on %s, batch %lld: %.3f ms (quartiles %.3f apart), %.4g samples/s, peak %.0f MB",
      flags.settings.model.c_str(), flags.precision.c_str(),
      to_string(flags.settings.device).c_str(), static_cast<long long>(work.batch()), times.at(0.5),
      times.at(0.75) - times.at(0.25), 1e3 * double(work.batch()) / times.at(0.5),
      double(memory_of(flags.settings.device).peak) / 1e6);
  std::printf(", loss %.4f to %.4f, %lld skipped\n", times.first_loss, times.last_loss,
              static_cast<long long>(work.skipped_steps()));
  if (flags.settings.device.kind == Device::kEmulated) {
    std::printf(
        "the emulated device executes kernels on the CPU: its times say nothing of a GPU\n");
  }
}

void measure(Flags flags) {
  kernels::set_threads(flags.threads);
  flags.settings.device = Device::parse(flags.device);
  flags.settings.precision = parse_precision(flags.precision);
  bench::StepWork work(flags.settings);
  const Times times = time_steps(work, flags);
  if (flags.json) {
    std::printf("%s\n", json_of(flags, work, times).c_str());
  } else {
    print_line(flags, work, times);
  }
}

void add_size_flags(CLI::App& app, bench::StepSettings& s) {
  const auto size = [&](const char* name, int64_t& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  };
  size("--batch", s.batch, "4 texts or 32 images by default");
  size("--tokens", s.tokens, "length of a text (1024; char_gpt 128)");
  size("--layers", s.layers, "of a language model; the default is the model's own, as below");
  size("--width", s.width, "of a language model, or of a ResNet's stem");
  size("--heads", s.heads, "of a language model");
  size("--vocabulary", s.vocabulary, "of a language model");
  app.add_option("--dropout", s.dropout, "of gpt2")->capture_default_str();
  size("--image", s.image, "edge of the images (224; cnn and mlp 28)");
  size("--channels", s.channels, "of the images");
  size("--classes", s.classes, "of the images");
  app.add_option("--blocks", s.blocks, "of a ResNet's four stages: 1,1,1,1")->delimiter(',');
}

int run_one(int argc, char** argv) {
  Flags flags;
  bench::StepSettings& s = flags.settings;
  CLI::App app(
      "Times the training step of one model. Without --model: a Google Benchmark program.");
  app.add_option("--model", s.model, bench::kStepModels)->required();
  app.add_option("--device", flags.device, "auto, cpu, cuda[:N] or emulated")
      ->capture_default_str();
  app.add_option("--precision", flags.precision, "fp32, fp16, bf16, autocast-fp16, half-fp16, ...")
      ->capture_default_str();
  add_size_flags(app, s);
  app.add_option("--optimizer", s.optimizer, "adamw or sgd")->capture_default_str();
  app.add_flag("--forward", s.forward, "evaluation only");
  app.add_flag("--graph", s.graph, "the step as a CUDA graph");
  const CLI::Range positive(int64_t{1}, int64_t{1} << 20);
  app.add_option("--samples", flags.samples, "medians are over these")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--steps", flags.steps, "of a sample")->check(positive)->capture_default_str();
  app.add_option("--warmup", flags.warmup, "steps before")->check(positive)->capture_default_str();
  app.add_option("--threads", flags.threads, "of the CPU; 0: all")->capture_default_str();
  app.add_flag("--json", flags.json, "one JSON object");
  try {
    app.parse(argc, argv);
    measure(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
  return 0;
}

bool names_a_model(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::strncmp(argument, "--model", 7) == 0 || std::strcmp(argument, "--help") == 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (names_a_model(argc, argv)) {
    return run_one(argc, argv);
  }
  register_small_models();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
