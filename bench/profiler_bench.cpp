// The cost of the profiler by activity: steps with and without it run in turn.
//
//   profiler_bench --json                      # cnn, ResNet-18 and char-GPT on drawn data
//   profiler_bench --device cuda --work cnn --rounds 9
//
// Each round times the same number of steps under every set of activities, in a newly drawn order,
// and once without a profiler. A ratio compares times of one round; medians are over the rounds.
// The works are cnn, resnet18 (32 x 32) and char_gpt (bench/step_work.h); loader, cnn on batches of
// a Loader with one worker; ranks, cnn on two ranks that are threads of this process; and ops, 1000
// additions of one element with their backward, which have no work except the op's overhead and so
// show the cost per op even on a busy machine. The work at the end of a window, such as looking up
// source lines, does not belong to a step and is reported separately. docs/profiling.md has the
// results.
#include <bench/bench_record.h>
#include <bench/drawn_batch.h>
#include <bench/statistics.h>
#include <bench/step_work.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/io/json_text.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/loader.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/kernels/base/parallel.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/train/profiler.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace binade::bench {
namespace {

struct CostFlags {
  std::vector<std::string> works = {"cnn", "resnet18", "char_gpt", "loader", "ranks", "ops"};
  std::string device = "cpu";
  int64_t rounds = 31, steps = 1, batch = 0;
  bool json = false;
};

// The measured sets of activities. Source lines belong to ops, so they include cpu.
struct Measured {
  const char* name;
  Activities activities;  // 0: no profiler
};
constexpr Activities one(Activity activity) { return static_cast<Activities>(activity); }
constexpr Measured kMeasured[] = {
    {"off", 0},
    {"cpu", one(Activity::cpu)},
    {"device", one(Activity::device)},
    {"memory", one(Activity::memory)},
    {"data", one(Activity::data)},
    {"collectives", one(Activity::collectives)},
    {"cpu, source lines", Activity::cpu | Activity::source_lines},
    {"all", kEveryActivity},
};
constexpr size_t kSets = std::size(kMeasured), kAll = kSets - 1;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The samples of one work: milliseconds per step by set and round.
struct CostTimes {
  std::string work;
  std::vector<double> times[kSets] = {};
  double ops[kSets] = {}, events[kSets] = {};  // per step, in the last round
  double finish_ms[kSets] = {};                // the largest, which includes the first look-up
};

double events_per_step(const train::Trace& trace, bool only_ops, int64_t steps) {
  double count = only_ops ? 0 : static_cast<double>(trace.counters.size());
  for (const train::TraceEvent& event : trace.events) {
    count += !only_ops || event.kind == TimelineEvent::op ? 1 : 0;
  }
  return count / static_cast<double>(steps);
}

// Times `flags.steps` steps with one set of activities.
void take_sample(const CostFlags& flags, const std::function<void()>& step, Device device,
                 size_t set, CostTimes& out) {
  std::unique_ptr<train::Profiler> profiler;
  if (kMeasured[set].activities != 0) {
    profiler = std::make_unique<train::Profiler>(
        train::ProfilerOptions{.activities = kMeasured[set].activities, .measure_roofline = false});
    profiler->record();
  }
  const double start = seconds();
  for (int64_t i = 0; i < flags.steps; ++i) {
    step();
    if (profiler) {
      profiler->step();
    }
  }
  synchronize(device);
  out.times[set].push_back(1e3 * (seconds() - start) / static_cast<double>(flags.steps));
  if (profiler) {
    const double end = seconds();
    profiler->finish();
    out.finish_ms[set] = std::max(out.finish_ms[set], 1e3 * (seconds() - end));
    out.ops[set] = events_per_step(profiler->trace(), true, flags.steps);
    out.events[set] = events_per_step(profiler->trace(), false, flags.steps);
  }
}

// The order of the sets in a round; all ranks use the same.
std::vector<size_t> order_of_round(int64_t round) {
  std::vector<size_t> order(kSets);
  for (size_t i = 0; i < kSets; ++i) {
    order[i] = i;
  }
  std::mt19937 random(static_cast<uint32_t>(round + 1));
  for (size_t i = kSets; i-- > 1;) {
    std::swap(order[i], order[random() % (i + 1)]);
  }
  return order;
}

void take_rounds(const CostFlags& flags, const std::function<void()>& step, Device device,
                 CostTimes& out) {
  for (int64_t i = 0; i < 2 * flags.steps; ++i) {
    step();
  }
  synchronize(device);
  for (int64_t round = 0; round < flags.rounds; ++round) {
    for (const size_t set : order_of_round(round)) {
      take_sample(flags, step, device, set, out);
    }
  }
}

StepSettings settings_of(const std::string& model, const CostFlags& flags, Device device) {
  StepSettings s;
  s.model = model;
  s.device = device;
  s.batches = 8;
  s.batch = flags.batch > 0 ? flags.batch : model == "cnn" ? 64 : 16;
  if (model == "resnet18") {
    s.image = 32;
    s.classes = 10;
  }
  return s;
}

constexpr int64_t kImages = 1024, kEdge = 28, kClasses = 10;

void train_batch(nn::Module& model, optim::Optimizer& adam, const Tensor& x, const Tensor& y) {
  cross_entropy(model(x), y).backward();
  (void)adam.step();
}

// Times cnn on batches from one loader worker.
void measure_loader(const CostFlags& flags, Device device, CostTimes& out) {
  const DrawnBatch drawn = drawn_images({kImages, 1, kEdge, kClasses}, 0);
  const data::TensorDataset images({{"images", drawn.inputs}, {"labels", drawn.labels}});
  data::Loader loader(
      images,
      {.batch = flags.batch > 0 ? flags.batch : 64, .workers = 1, .seed = 1, .device = device});
  manual_seed(0);
  const auto model = nn::make_model("cnn", {1, kEdge, kEdge, kClasses});
  model->to(device);
  optim::AdamW adam(model->parameters());
  int64_t epoch = 0;
  loader.epoch(epoch);
  take_rounds(
      flags,
      [&] {
        data::Batch batch;
        if (!loader.next(batch)) {
          loader.epoch(++epoch);
          check(loader.next(batch), "profiler_bench: --batch is larger than the data");
        }
        train_batch(*model, adam, batch["images"], batch["labels"]);
      },
      device, out);
}

// Times cnn on two ranks. Rank 0 is profiled; the other rank takes as many steps.
void measure_ranks(const CostFlags& flags, CostTimes& out) {
  kernels::set_threads(1);  // one core per rank, if there are enough
  dist::run_threads(2, [&](dist::Communicator& group) {
    manual_seed(0);
    const DrawnBatch drawn =
        drawn_images({flags.batch > 0 ? flags.batch : 64, 1, kEdge, kClasses}, group.rank());
    const auto model = nn::make_model("cnn", {1, kEdge, kEdge, kClasses});
    optim::AdamW adam(model->parameters());
    dist::DistributedDataParallel ddp(group, model->parameters(), {.check_every = 0});
    const auto step = [&] { train_batch(*model, adam, drawn.inputs, drawn.labels); };
    if (group.is_root()) {
      take_rounds(flags, step, Device{}, out);
      return;
    }
    const int64_t samples = flags.rounds * static_cast<int64_t>(kSets);
    for (int64_t i = 0; i < (samples + 2) * flags.steps; ++i) {
      step();
    }
  });
  kernels::set_threads(0);
}

// Times ops of one element.
void measure_ops(const CostFlags& flags, CostTimes& out) {
  constexpr int kOps = 1000;
  const Tensor x = full({1}, 1).require_grad(), one_more = full({1}, 1);
  take_rounds(
      flags,
      [&] {
        Tensor y = x;
        for (int i = 0; i < kOps; ++i) {
          y = y + one_more;
        }
        y.backward();
      },
      Device{}, out);
}

CostTimes measure(const std::string& work, const CostFlags& flags, Device device) {
  CostTimes out{.work = work};
  if (work == "loader") {
    measure_loader(flags, device, out);
  } else if (work == "ranks") {
    measure_ranks(flags, out);
  } else if (work == "ops") {
    measure_ops(flags, out);
  } else {
    StepWork steps(settings_of(work, flags, device));
    take_rounds(
        flags, [&] { steps.step(); }, device, out);
  }
  return out;
}

// For each round, the time with the activities divided by the time without a profiler.
std::vector<double> ratios_of(const CostTimes& times, size_t set) {
  std::vector<double> ratios;
  for (size_t i = 0; i < times.times[set].size(); ++i) {
    ratios.push_back(times.times[set][i] / times.times[0][i]);
  }
  return ratios;
}

// Microseconds that these activities add per op; 0 if no ops are recorded.
double microseconds_per_op(const CostTimes& times, size_t set) {
  const double more = (median(ratios_of(times, set)) - 1) * median(times.times[0]) * 1e3;
  return times.ops[set] > 0 ? more / times.ops[set] : 0;
}

std::string json_of(const CostTimes& times) {
  std::string sets;
  for (size_t set = 0; set < kSets; ++set) {
    const std::vector<double> ratios = ratios_of(times, set);
    const MedianInterval range = median_interval(ratios);
    sets += text(set == 0 ? "" : ", ", "{\"activities\": ", json_quoted(kMeasured[set].name),
                 ", \"milliseconds\": ", median(times.times[set]), ", \"ratio\": ", median(ratios),
                 ", \"low\": ", range.low, ", \"high\": ", range.high,
                 ", \"coverage\": ", range.coverage, ", \"ops\": ", times.ops[set],
                 ", \"events\": ", times.events[set],
                 ", \"microseconds_per_op\": ", microseconds_per_op(times, set),
                 ", \"finish_milliseconds\": ", times.finish_ms[set], "}");
  }
  return text("{\"work\": ", json_quoted(times.work), ", \"sets\": [", sets, "]}");
}

void print_table(const CostTimes& times) {
  std::printf("%s: %.3f ms per step without the profiler, %.0f ops\n", times.work.c_str(),
              median(times.times[0]), times.ops[kAll]);
  for (size_t set = 1; set < kSets; ++set) {
    const std::vector<double> ratios = ratios_of(times, set);
    const MedianInterval range = median_interval(ratios);
    std::printf("  %-18s %+6.2f%% (%+.2f to %+.2f at %.0f%%), %.0f events per step",
                kMeasured[set].name, 100 * (median(ratios) - 1), 100 * (range.low - 1),
                100 * (range.high - 1), 100 * range.coverage, times.events[set]);
    if (times.ops[set] > 0) {
      std::printf(", %.2f us per op", microseconds_per_op(times, set));
    }
    std::printf(", %.0f ms at the end\n", times.finish_ms[set]);
  }
}

void run(const CostFlags& flags) {
  const Device device = Device::parse(flags.device);
  std::string works;
  for (const std::string& work : flags.works) {
    const CostTimes times = measure(work, flags, device);
    if (flags.json) {
      works += (works.empty() ? "" : ", ") + json_of(times);
    } else {
      print_table(times);
    }
  }
  if (flags.json) {
    std::printf("{\"machine\": %s, \"rounds\": %lld, \"steps\": %lld, \"works\": [%s]}\n",
                json_of(machine_facts(device)).c_str(), static_cast<long long>(flags.rounds),
                static_cast<long long>(flags.steps), works.c_str());
  }
}

}  // namespace
}  // namespace binade::bench

int main(int argc, char** argv) {
  using binade::bench::CostFlags;
  CostFlags flags;
  CLI::App app("Times steps with and without the profiler, by activity.");
  app.add_option("--work", flags.works, "cnn, resnet18, char_gpt, loader, ranks, ops")
      ->delimiter(',');
  app.add_option("--device", flags.device, "cpu, cuda[:N] or emulated; ranks are on the CPU")
      ->capture_default_str();
  const CLI::Range positive(int64_t{1}, int64_t{1} << 20);
  app.add_option("--rounds", flags.rounds, "medians are over these")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--steps", flags.steps, "of a sample")->check(positive)->capture_default_str();
  app.add_option("--batch", flags.batch, "samples of a step; 64, or 16 of resnet18 and char_gpt")
      ->check(positive);
  app.add_flag("--json", flags.json, "one JSON object");
  try {
    app.parse(argc, argv);
    binade::bench::run(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "profiler_bench: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
