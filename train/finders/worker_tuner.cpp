#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/error.h>
#include <binade/train/finders/worker_tuner.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profiler.h>
#include <binade/train/report/numbers_internal.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace binade::train {
namespace {

using TunerClock = std::chrono::steady_clock;

constexpr int64_t kSettling = 3;  // steps of an epoch before those that are looked at
constexpr int64_t kRecorded = 20;

}  // namespace

struct WorkerTuner::State {
  State(std::shared_ptr<data::WorkerPool> given, std::function<void(const std::string&)> told)
      : pool(std::move(given)), say(std::move(told)) {}

  void begin_epoch(const RunView& run);
  void count_step();
  void end_epoch();
  void try_more();
  void judge();
  void tell(const std::string& line) const {
    if (say) {
      say(line);
    } else {
      std::printf("%s\n", line.c_str());
    }
  }
  // Steps per second of the epoch, from step kSettling on; 0: too few.
  double speed() const {
    const double seconds = std::chrono::duration<double>(last - begin).count();
    return steps > kSettling + 1 && seconds > 0 ? double(steps - kSettling - 1) / seconds : 0;
  }

  std::shared_ptr<data::WorkerPool> pool;
  std::function<void(const std::string&)> say;
  std::unique_ptr<Profiler> profiler;
  int64_t epochs = 0;  // of this fit(), that began
  int64_t steps = 0;   // of the epoch
  TunerClock::time_point begin, last;
  int before = 0;  // threads, while more are tried; else 0
  double speed_before = 0, predicted = 0;
};

void WorkerTuner::State::begin_epoch(const RunView& run) {
  const bool is_long = std::exchange(steps, 0) > kSettling + kRecorded;  // the epoch before
  ++epochs;
  const int cores = kernels::usable_cores().count;
  const bool may_have_more = run.ranks == 1 && pool->threads() < cores;
  if (epochs == 2 && is_long && may_have_more && !Profiler::current()) {
    profiler = std::make_unique<Profiler>(
        ProfilerOptions{.wait = kSettling,
                        .warmup = 0,
                        .active = kRecorded,
                        .activities = Activity::cpu | Activity::device | Activity::data,
                        .measure_roofline = false});
  }
}

void WorkerTuner::State::count_step() {
  last = TunerClock::now();
  if (++steps == kSettling + 1) {
    begin = last;
  }
}

void WorkerTuner::State::end_epoch() {
  if (before > 0) {
    judge();
  } else if (profiler) {
    try_more();
  }
}

void WorkerTuner::State::try_more() {
  profiler->finish();
  const Trace trace = profiler->trace();
  profiler.reset();
  if (trace.steps().empty()) {
    return;
  }
  for (const Advice& advice : find_stalls({&trace, 1}).advice) {
    if (advice.setting == "workers" && advice.value > pool->threads()) {
      before = pool->threads();
      speed_before = speed();
      predicted = advice.gain;
      pool->resize(static_cast<int>(advice.value));
      return;
    }
  }
}

void WorkerTuner::State::judge() {
  const double gain = speed_before > 0 ? speed() / speed_before - 1 : 0;
  const bool keeps = gain >= predicted / 2;
  tell(text("workers ", before, " -> ", pool->threads(), ": predicted +", percent_of(predicted, 0),
            ", measured ", gain < 0 ? "" : "+", percent_of(gain, 0),
            keeps ? "; kept" : text("; back to ", before)));
  if (!keeps) {
    pool->resize(before);
  }
  before = 0;
}

WorkerTuner::WorkerTuner(std::shared_ptr<data::WorkerPool> pool,
                         std::function<void(const std::string& line)> say) {
  check(pool != nullptr, "worker tuner: got no pool, expected that of the loader");
  state_ = std::make_shared<State>(std::move(pool), std::move(say));
}

Callbacks WorkerTuner::callbacks() const {
  const auto end = [state = state_](const RunView&) { state->profiler.reset(); };
  return {.train_start = [state = state_](const RunView&) { state->epochs = 0; },
          .train_end = end,
          .epoch_start = [state = state_](const RunView& run) { state->begin_epoch(run); },
          .epoch_end = [state = state_](const RunView&) { state->end_epoch(); },
          .step = [state = state_](const RunView&) { state->count_step(); },
          .exception = end};
}

}  // namespace binade::train
