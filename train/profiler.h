// Profiler: records what a program does, by steps, as a trace and as tables (docs/profiling.md).
//
//   train::Profiler profiler({.wait = 5, .warmup = 2, .active = 20, .file = "trace.json"});
//   trainer.fit(loader);              // a Trainer calls step() itself
//   std::cout << train::trace_tables(profiler.trace());
//
// A loop of your own calls profiler.step() after each step; code without steps is recorded from
// record() or the first step to finish(). The phases data, backward and optimizer are labelled by
// the engine; ops outside of them count as forward. ProfileLabel labels code of your own.
//
// Ops are seen on the thread that calls step() or record(); stages of the loader, communication and
// memory on all threads. While no window is open, each instrumented place costs one test of a flag.
// docs/profiling.md has the cost of each activity.
#pragma once
#include <binade/core/owned.h>
#include <binade/core/tensor/source_line.h>
#include <binade/train/profile/trace.h>

#include <memory>
#include <string>
#include <string_view>

namespace binade::train {

// Numbers of steps: `wait` steps are skipped, in `warmup` steps the instruments run but nothing is
// kept, `active` steps are recorded; all this `repeat` times (0: until the end).
struct ProfileWindow {
  int64_t wait = 5, warmup = 2, active = 20, repeat = 1;
};
// "20" (active), "5,2,20" or "5,2,20,1" (all, in this order). Throws Error for anything else.
ProfileWindow parse_profile_window(const std::string& text);

struct ProfilerOptions {
  int64_t wait = 5, warmup = 2, active = 20, repeat = 1;  // as in ProfileWindow
  Activities activities = kEveryActivity;                 // core/observe/timeline.h
  // The file for each window's trace; a later window N has "-N" before the extension. Empty: only
  // trace() has the last window.
  std::string file = {};
  // A folder for TensorBoard's profile page (tensorboard --logdir). Empty: none.
  std::string tensorboard = {};
  // Where the flame graph is written, as SVG, with numbers as in `file`. Empty: none.
  std::string flame = {};
  int rank = 0;
  int64_t max_events = 400'000;            // of a window; later ones are dropped and counted
  int64_t max_bytes = int64_t{200} << 20;  // of a file, likewise
  bool measure_roofline = true;            // after a window: takes some 0.1 s

  ProfilerOptions& window(const ProfileWindow& w) {
    wait = w.wait, warmup = w.warmup, active = w.active, repeat = w.repeat;
    return *this;
  }
};

class Profiler {
 public:
  // Throws Error on bad options, or if another Profiler exists in this process.
  explicit Profiler(ProfilerOptions options = {});
  // Ends the open window; an error in that is a warning.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // A step has ended.
  void step();
  // Opens a window now, without a schedule, until finish().
  void record();
  // Ends the open window and writes its files; a window in which no step ended keeps what it has.
  // Throws Error if a file cannot be written.
  void finish();

  const Trace& trace() const;       // of the last window; empty before
  int64_t windows() const;          // that have ended
  int64_t steps() const;            // that step() has counted
  bool is_over() const;             // all windows have ended
  const std::string& file() const;  // of the options
  // False on a thread that is not the one whose steps it counts, such as another rank's.
  bool follows_this_thread() const;
  static Profiler* current();  // of this process; null if there is none

 private:
  struct State;
  Owned<State> state_;
};

// Makes the profiler of a program with a flag --profile. `window` is the text of the flag; then the
// profiler writes RUN/trace.json, RUN/flame.svg and the folder RUN/tensorboard, on ranks other than
// 0 only RUN/trace-rankN.json. Without the flag (empty) BINADE_PROFILE has the window and
// BINADE_PROFILE_FILE the file; `binade bottleneck` sets them. Null if neither is given, or if a
// Profiler exists.
std::unique_ptr<Profiler> profile_run(const std::string& window, const std::string& run, int rank);
// Ends the window of the profiler of profile_run(), if there is one.
// If the Trainer had already written RUN/report.html, the report is written again, with the slowest
// ops.
void finish_profile(Profiler* profiler, const std::string& run);
// The window of a flag --profile without a value.
inline constexpr const char* kDefaultProfileWindow = "5,2,20";

// The Trainer calls this after each step: Profiler::current()->step(), if there is one that follows
// this thread.
void profile_step();

// Names the code of its scope, and its line, in traces and tables: ops inside of it count for that
// line in the table by source line. While nothing is recorded it costs one test of a flag.
class ProfileLabel {
 public:
  explicit ProfileLabel(std::string_view name, SourceLine where = SourceLine::here())
      : span_(Activity::cpu, TimelineEvent::user,
              binade::detail::timeline_has(Activity::cpu) ? timeline_text(name) : "") {
    if (span_.is_recorded()) [[unlikely]] {
      set_line(where);
    }
  }

 private:
  void set_line(SourceLine where);

  TimelineSpan span_;
};

}  // namespace binade::train
