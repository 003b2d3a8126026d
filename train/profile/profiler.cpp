#include <binade/core/autograd/autograd.h>
#include <binade/core/device/device_info.h>
#include <binade/core/device/memory.h>
#include <binade/core/io/file_system.h>
#include <binade/core/observe/op_timer_internal.h>
#include <binade/core/observe/warning.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/profile/roofline_internal.h>
#include <binade/train/profile/trace_rows_internal.h>
#include <binade/train/profile/trace_tables.h>
#include <binade/train/profiler.h>
#include <time.h>
#include <unistd.h>

#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/kernel_times.h>
#endif

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

namespace binade::train {
namespace {

std::atomic<Profiler*> current_profiler{nullptr};

// Numbers of a step that no op reports.
void note_step_counters() {
  if (binade::detail::timeline_has(Activity::cpu)) {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    binade::detail::timeline_counter(kCpuTime, static_cast<double>(used.tv_sec) * 1e3 +
                                                   static_cast<double>(used.tv_nsec) * 1e-6);
  }
  if (binade::detail::timeline_has(Activity::memory)) {
    binade::detail::timeline_counter("live graph nodes",
                                     static_cast<double>(binade::detail::thread_state.live_nodes));
    binade::detail::timeline_counter("saved for backward", static_cast<double>(saved_bytes().live));
    const MemoryStats stats = memory_stats();
    binade::detail::timeline_counter("allocated", static_cast<double>(stats.allocated));
    binade::detail::timeline_counter("reserved", static_cast<double>(stats.reserved));
  }
}

void time_kernels([[maybe_unused]] bool on) {
#ifdef BINADE_WITH_CUDA
  kernels::set_kernel_times(on);
#endif
}

// Adds the lanes of devices; returns how many kernels were not timed. An event's time has some 24
// bits, so a kernel is moved to the end of the one before it where they would overlap.
int64_t take_kernels() {
  int64_t dropped = 0;
#ifdef BINADE_WITH_CUDA
  std::map<std::string, int64_t> ends;
  std::map<void*, size_t> streams;
  for (const kernels::KernelTime& one : kernels::take_kernel_times(dropped)) {
    const size_t stream =
        one.stream ? streams.try_emplace(one.stream, streams.size() + 1).first->second : 0;
    const std::string lane = stream > 0 ? text(one.device, " stream ", stream) : text(one.device);
    int64_t& end = ends[lane];
    const int64_t begin = std::max(one.begin, end);
    end = std::max(one.end, begin);
    binade::detail::timeline_add_to(
        lane, {.kind = TimelineEvent::kernel, .name = one.name, .begin = begin, .end = end});
  }
#endif
  return dropped;
}

std::map<std::string, std::string> facts_of(const ProfilerOptions& options) {
  std::string activities;
  const std::pair<Activity, const char*> names[] = {{Activity::cpu, "cpu"},
                                                    {Activity::device, "device"},
                                                    {Activity::memory, "memory"},
                                                    {Activity::data, "data"},
                                                    {Activity::collectives, "collectives"},
                                                    {Activity::source_lines, "source lines"}};
  for (const auto& [activity, name] : names) {
    if (contains(options.activities, activity)) {
      activities += text(activities.empty() ? "" : ", ", name);
    }
  }
  return {{"activities", activities},
          {"cores", text(kernels::usable_cores().count)},
          {"threads", text(kernels::threads())},
          {"device", describe(Device::best())}};
}

// "runs/1/trace.json", 2 -> "runs/1/trace-2.json"
std::string numbered(const std::string& file, int64_t window) {
  if (window <= 1) {
    return file;
  }
  const std::filesystem::path path(file);
  return (path.parent_path() / path.stem()).string() + "-" + std::to_string(window) +
         path.extension().string();
}

void write(const std::string& file, const std::string& json) {
  if (const auto folder = std::filesystem::path(file).parent_path(); !folder.empty()) {
    make_directories(folder.string());
  }
  write_file_durably(file, json);
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "host";
}

}  // namespace

ProfileWindow parse_profile_window(const std::string& text_) {
  std::vector<int64_t> numbers;
  const char* at = text_.data();
  const char* end = at + text_.size();
  bool good = !text_.empty();
  while (good && numbers.size() < 4) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    constexpr int64_t kMost = 1'000'000'000;
    good = error == std::errc() && value >= 0 && value <= kMost;
    numbers.push_back(value);
    if (next == end || !good) {
      at = next;
      break;
    }
    good = *next == ',';
    at = next + 1;
  }
  good = good && at == end && (numbers.size() == 1 || numbers.size() >= 3);
  ProfileWindow window;
  if (good && numbers.size() == 1) {
    window.active = numbers[0];
  } else if (good) {
    window = {numbers[0], numbers[1], numbers[2], numbers.size() > 3 ? numbers[3] : 1};
  }
  check(good && window.active > 0, "--profile: got '", text_,
        "', expected the number of steps to record, such as 20, or WAIT,WARMUP,ACTIVE or "
        "WAIT,WARMUP,ACTIVE,REPEAT");
  return window;
}

struct Profiler::State {
  explicit State(ProfilerOptions given)
      : options(std::move(given)),
        timeline({.activities = options.activities, .max_events = options.max_events}) {}

  void begin_instruments();
  void end_instruments();
  void open();
  void close();
  void end_step(int64_t now);
  void follow_schedule();
  void write_files() const;

  ProfilerOptions options;
  Timeline timeline;
  binade::detail::OpTimer ops;
  std::optional<ObserverScope> scope;
  std::thread::id thread;
  int64_t steps = 0;     // counted so far
  int64_t in_cycle = 0;  // steps since the schedule began anew
  int64_t windows = 0;
  bool is_open = false, by_hand = false, over = false;
  int64_t begin = 0;  // of the window
  int64_t step_begin = 0;
  int64_t first_step = 0;
  Trace trace;
};

void Profiler::State::begin_instruments() {
  if (scope) {
    return;
  }
  thread = std::this_thread::get_id();
  timeline.clear();
  timeline.record(true);
  if (contains(options.activities, Activity::device)) {
    time_kernels(true);
  }
  ops.mark();
  if (contains(options.activities, Activity::cpu)) {
    scope.emplace(ops);
  }
}

void Profiler::State::end_instruments() {
  scope.reset();
  time_kernels(false);
  timeline.record(false);
}

void Profiler::State::open() {
  begin_instruments();
  timeline.clear();  // what the warm-up recorded
  ops.mark();
  begin = step_begin = binade::detail::timeline_now();
  first_step = steps;
  is_open = true;
  note_step_counters();
}

void Profiler::State::end_step(int64_t now) {
  if (is_open) {
    note_step_counters();
    binade::detail::timeline_add({.kind = TimelineEvent::step,
                                  .name = timeline_text(text("ProfilerStep#", steps)),
                                  .begin = step_begin,
                                  .end = now});
  }
  ++steps;
  ++in_cycle;
  step_begin = binade::detail::timeline_boundary() = binade::detail::timeline_now();
}

void Profiler::State::follow_schedule() {
  if (by_hand || over) {
    return;
  }
  if (in_cycle >= options.wait + options.warmup + options.active) {
    close();
    in_cycle = 0;
    over = options.repeat > 0 && windows >= options.repeat;
    if (over) {
      return;
    }
  }
  if (in_cycle >= options.wait + options.warmup) {
    if (!is_open) {
      open();
    }
  } else if (in_cycle >= options.wait) {
    begin_instruments();
  }
}

void Profiler::State::close() {
  if (!is_open) {
    end_instruments();
    return;
  }
  end_instruments();
  is_open = false;
  const int64_t untimed = take_kernels();
  trace = make_trace(timeline.lanes(), begin);
  trace.dropped = timeline.dropped() + untimed;
  trace.rank = options.rank;
  trace.first_step = first_step;
  trace.facts = facts_of(options);
  timeline.clear();
  if (options.measure_roofline) {
    trace.roofline = measure_roofline(Device{});
  }
  ++windows;
  write_files();
}

void Profiler::State::write_files() const {
  if (!options.flame.empty()) {
    write(numbered(options.flame, windows), flame_graph(trace));
  }
  if (options.file.empty() && options.tensorboard.empty()) {
    return;
  }
  const std::string json = trace_json(trace, {.max_bytes = options.max_bytes});
  if (!options.file.empty()) {
    write(numbered(options.file, windows), json);
  }
  if (!options.tensorboard.empty()) {
    write(text(options.tensorboard, "/", host_name(), "_", ::getpid(), ".", trace.begin_ns,
               ".pt.trace.json"),
          json);
  }
}

Profiler::Profiler(ProfilerOptions options) {
  const ProfilerOptions& o = options;
  check(o.wait >= 0 && o.warmup >= 0 && o.active > 0 && o.repeat >= 0, "profiler: got wait ",
        o.wait, ", warmup ", o.warmup, ", active ", o.active, ", repeat ", o.repeat,
        ", expected at least 1 active step and none below 0");
  check(o.activities != 0, "profiler: got no activities, expected at least one");
  state_ = std::make_unique<State>(std::move(options));
  current_profiler = this;
  state_->follow_schedule();  // the first step may belong to the window
}

Profiler::~Profiler() {
  current_profiler = nullptr;
  try {
    finish();
  } catch (const std::exception& error) {
    warn(error.what());
  }
}

void Profiler::step() {
  State& s = *state_;
  check(follows_this_thread(),
        "profiler: got step() on another thread than before, expected one thread that steps");
  s.thread = std::this_thread::get_id();
  s.end_step(binade::detail::timeline_now());
  s.follow_schedule();
}

void Profiler::record() {
  state_->by_hand = true;
  if (!state_->is_open) {
    state_->open();
  }
}

void Profiler::finish() {
  State& s = *state_;
  if (!s.is_open && s.windows == 0 && s.steps > 0 && !s.by_hand) {
    warn(text("profiler: the run ended after ", s.steps,
              " steps, before the window, which begins after ", s.options.wait + s.options.warmup,
              ": nothing was recorded; ask for an earlier one, such as --profile 0,1,",
              std::max<int64_t>(1, s.steps - 2)));
  }
  s.close();
  s.over = true;
}

const Trace& Profiler::trace() const { return state_->trace; }
int64_t Profiler::windows() const { return state_->windows; }
int64_t Profiler::steps() const { return state_->steps; }
bool Profiler::is_over() const { return state_->over; }
const std::string& Profiler::file() const { return state_->options.file; }
Profiler* Profiler::current() { return current_profiler; }

bool Profiler::follows_this_thread() const {
  return state_->thread == std::thread::id() || state_->thread == std::this_thread::get_id();
}

void ProfileLabel::set_line(SourceLine where) {
  span_.set_note(timeline_text(text(where.file, ":", where.line)));
}

void profile_step() {
  Profiler* profiler = Profiler::current();
  if (profiler && profiler->follows_this_thread()) [[unlikely]] {
    profiler->step();
  }
}

}  // namespace binade::train
