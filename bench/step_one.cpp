#include <bench/step_one.h>
#include <bench/step_work.h>
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
#include <iostream>
#include <numeric>

namespace binade::bench {
namespace {

struct Flags {
  StepSettings settings;
  std::string device = "auto", precision = "fp32";
  int64_t samples = 5, steps = 4, warmup = 4, train = 0;
  int threads = 0;
  bool json = false, serve = false, unchecked = false;
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

// A sample times several steps between two waits for the device, as in a training without reads.
class StepTimer {
 public:
  StepTimer(StepWork& work, const Flags& flags) : work_(work), flags_(flags) {
    times_.first_loss = work_.step().item();
    for (int64_t i = 1; i < flags_.warmup; ++i) {
      work_.step();
    }
    synchronize(flags_.settings.device);
    reset_peak(flags_.settings.device);
  }
  double sample() {  // milliseconds per step
    const double start = now();
    for (int64_t i = 0; i < flags_.steps; ++i) {
      loss_ = work_.step();
    }
    synchronize(flags_.settings.device);
    times_.milliseconds.push_back(1e3 * (now() - start) / double(flags_.steps));
    return times_.milliseconds.back();
  }
  bool sampled() const { return loss_.defined(); }
  Times times() const {  // REQUIRES: a sample was taken
    Times result = times_;
    result.last_loss = loss_.item();
    std::ranges::sort(result.milliseconds);
    return result;
  }

 private:
  StepWork& work_;
  const Flags& flags_;
  Times times_{};
  Tensor loss_;
};

// JSON has no NaN, so it becomes null.
std::string json_number(double value) { return std::isfinite(value) ? text(value) : "null"; }

std::string json_of(const Flags& flags, const StepWork& work, const Times& times) {
  const StepSettings& s = flags.settings;
  const bool is_text = is_text_model(s.model);
  const double per_second = 1e3 * double(work.batch()) / times.at(0.5);
  const Memory memory = memory_of(s.device);
  return text(
      "{\"model\": ", json_quoted(s.model), ", \"device\": ", json_quoted(to_string(s.device)),
      ", \"precision\": ", json_quoted(flags.precision),
      ", \"pass\": ", json_quoted(s.forward ? "forward" : "step"),
      ", \"optimizer\": ", json_quoted(s.optimizer), ", \"graph_replays\": ", work.replays(),
      ", \"batch\": ", work.batch(), ", \"", is_text ? "tokens" : "image", "\": ", work.length(),
      ", \"parameters\": ", work.parameter_count(), ", \"threads\": ", kernels::threads(),
      ", \"samples\": ", times.milliseconds.size(), ", \"steps\": ", flags.steps,
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

// A batch that repeats must be learned: the loss is finite and does not grow. The update is small,
// so the first and the last loss of a few steps may be close.
void check_losses(const Flags& flags, const StepWork& work, const Times& times) {
  if (flags.unchecked) {
    return;
  }
  constexpr double kSlack = 1.1;  // for dropout, and for several batches in turn
  check(std::isfinite(times.first_loss) && std::isfinite(times.last_loss),
        "step_bench: the loss is ", times.first_loss, " in the first step and ", times.last_loss,
        " in the last, after ", work.skipped_steps(),
        " skipped steps; expected numbers (--no-check times it all the same)");
  check(flags.settings.forward || times.last_loss <= kSlack * times.first_loss,
        "step_bench: the loss grew from ", times.first_loss, " to ", times.last_loss,
        "; expected a step that learns (--no-check times it all the same)");
}

void print_line(const Flags& flags, const StepWork& work, const Times& times) {
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

void answer(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void serve(StepTimer& timer) {
  answer("{\"ready\": true}");
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "sample") {
      answer(text("{\"milliseconds\": ", timer.sample(), "}"));
    } else {
      answer(text("{\"error\": ", json_quoted(text("got '", line, "', expected sample")), "}"));
    }
  }
}

constexpr int64_t kLastLosses = 20;

// Trains and reports the losses: one for each tenth of the steps, and the mean of the last ones.
void train(StepWork& work, const Flags& flags) {
  std::vector<double> losses;
  std::string shown;
  for (int64_t i = 0; i < flags.train; ++i) {
    losses.push_back(work.step().item());
    if (i % std::max<int64_t>(1, flags.train / 10) == 0 || i + 1 == flags.train) {
      shown += text(shown.empty() ? "" : ", ", json_number(losses.back()));
    }
  }
  const int64_t last = std::min(kLastLosses, flags.train);
  const double mean = std::accumulate(losses.end() - last, losses.end(), 0.0) / double(last);
  answer(text("{\"model\": ", json_quoted(flags.settings.model), ", \"precision\": ",
              json_quoted(flags.precision), ", \"train_steps\": ", flags.train, ", \"losses\": [",
              shown, "], \"mean_of_last\": ", last, ", \"mean_loss\": ", json_number(mean),
              ", \"skipped_steps\": ", work.skipped_steps(), "}"));
}

void run_model(Flags flags) {
  kernels::set_threads(flags.threads);
  flags.settings.device = Device::parse(flags.device);
  flags.settings.precision = parse_precision(flags.precision);
  StepWork work(flags.settings);
  if (flags.train > 0) {
    return train(work, flags);
  }
  StepTimer timer(work, flags);
  if (flags.serve) {
    serve(timer);
  }
  for (int64_t i = 0; i < (flags.serve ? 0 : flags.samples); ++i) {
    timer.sample();
  }
  if (!timer.sampled()) {
    return;  // no sample was requested
  }
  const Times times = timer.times();
  check_losses(flags, work, times);
  if (flags.json || flags.serve) {
    answer(json_of(flags, work, times));
  } else {
    print_line(flags, work, times);
  }
}

void add_size_flags(CLI::App& app, StepSettings& s) {
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

}  // namespace

int run_step_model(int argc, char** argv) {
  Flags flags;
  StepSettings& s = flags.settings;
  CLI::App app(
      "Times the training step of one model. Without --model: a Google Benchmark program.");
  app.add_option("--model", s.model, kStepModels)->required();
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
  app.add_option("--lr", s.lr, "learning rate (1e-3)")->check(CLI::PositiveNumber);
  app.add_option("--batches", s.batches,
                 "drawn with a rule to learn, used in turn; 0: one of noise")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20));
  app.add_option("--train", flags.train, "so many steps instead of times: their losses as JSON")
      ->check(positive);
  app.add_flag("--serve", flags.serve, "times a sample for each line \"sample\" of the input");
  app.add_flag("--no-check", flags.unchecked, "no error where the loss is no number or grows");
  app.add_flag("--json", flags.json, "one JSON object");
  try {
    app.parse(argc, argv);
    run_model(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace binade::bench
