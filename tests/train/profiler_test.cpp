// Tests the profiler: what it records, its file and its tables. Times are not tested, only how
// events nest and that sums agree.
#include <binade/binade.h>
#include <binade/core/observe/observer.h>
#include <binade/core/observe/timeline.h>
#include <binade/train/profile/trace_tables.h>
#include <binade/train/profiler.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace binade::train::profiler_test {
namespace {

using Kind = TimelineEvent::Kind;
using binade::testing::TemporaryDirectory;

struct Net : nn::Module {
  Net() {
    register_module("first", first);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(relu(first(flatten(x, 1)))); }
  nn::Linear first{{.in = 48, .out = 16}};
  nn::Linear last{{.in = 16, .out = 10}};
};

ProfilerOptions quick(int64_t wait, int64_t warmup, int64_t active, int64_t repeat = 1) {
  return {.wait = wait,
          .warmup = warmup,
          .active = active,
          .repeat = repeat,
          .activities = kEveryActivity & ~static_cast<Activities>(Activity::source_lines),
          .measure_roofline = false};
}

// Trains a net for some steps in a hand-written loop.
struct Training {
  explicit Training(int workers = 2)
      : data(40), loader(data, {.batch = 4, .workers = workers, .seed = 3}) {}
  void step(Profiler* profiler = nullptr) {
    data::Batch batch;
    if (!loader.next(batch)) {
      loader.epoch(++epoch);
      loader.next(batch);
    }
    cross_entropy(net(batch.images), batch.labels).backward();
    static_cast<void>(sgd.step());
    if (profiler) {
      profiler->step();
    }
  }
  data::test::FakeDataset data;
  data::Loader loader;
  Net net;
  optim::SGD sgd{net.parameters(), {.lr = 0.01}};
  int64_t epoch = (loader.epoch(0), 0);
};

Trace trace_of(int64_t steps, ProfilerOptions options, int workers = 2) {
  Training training(workers);
  Profiler profiler(std::move(options));
  for (int64_t i = 0; i < steps; ++i) {
    training.step(&profiler);
  }
  profiler.finish();
  return profiler.trace();
}

std::vector<const TraceEvent*> events_of(const Trace& trace, Kind kind, const std::string& name) {
  std::vector<const TraceEvent*> all;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == kind && (name.empty() || event.name == name)) {
      all.push_back(&event);
    }
  }
  return all;
}

TEST(Profiler, RecordsTheStepsOfItsWindow) {
  const Trace trace = trace_of(9, quick(2, 1, 4));
  EXPECT_EQ(trace.steps().size(), 4U);
  EXPECT_EQ(trace.first_step, 3);
  EXPECT_EQ(trace.steps()[0]->name, "ProfilerStep#3");
  EXPECT_EQ(trace.lanes[0].name, "main");
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_GE(trace.steps()[i]->begin, trace.steps()[i - 1]->end);
  }
  for (const char* phase : {"data", "backward", "optimizer"}) {
    EXPECT_EQ(events_of(trace, Kind::phase, phase).size(), 4U) << phase;
  }
}

TEST(Profiler, KnowsOpsWithModuleShapesAndWork) {
  const Trace trace = trace_of(3, quick(0, 1, 2));
  const auto linear = events_of(trace, Kind::op, "linear");
  ASSERT_EQ(linear.size(), 8U);  // two layers, two passes, two steps
  std::set<std::string> modules;
  for (const TraceEvent* event : linear) {
    modules.insert(event->module);
    EXPECT_EQ(event->phase, event->backward ? "backward" : "forward");
    if (event->module == "first") {
      // The first layer's input gets no gradient: one product forward, one backward.
      EXPECT_EQ(event->flops, 2.0 * 4 * 48 * 16);
      EXPECT_EQ(event->note.find("f32 [4, 48], f32 [16, 48]"), 0U) << event->note;
    } else {
      EXPECT_EQ(event->flops, (event->backward ? 2 : 1) * 2.0 * 4 * 16 * 10);
    }
  }
  EXPECT_EQ(modules, (std::set<std::string>{"first", "last"}));
  EXPECT_EQ(events_of(trace, Kind::op, "flatten").size(), 0U);  // it is made of reshape
  EXPECT_FALSE(events_of(trace, Kind::op, "cross_entropy").empty());
}

TEST(Profiler, NestsEventsOfAThread) {
  const Trace trace = trace_of(6, quick(1, 1, 4));
  std::vector<const TraceEvent*> open;
  for (const TraceEvent& event : trace.events) {
    while (!open.empty() && (open.back()->lane != event.lane || open.back()->end <= event.begin)) {
      open.pop_back();
    }
    EXPECT_LE(event.begin, event.end);
    if (!open.empty()) {
      EXPECT_LE(event.end, open.back()->end) << event.name << " in " << open.back()->name;
    }
    open.push_back(&event);
  }
}

TEST(Profiler, TablesAddUpToTheStep) {
  const Trace trace = trace_of(8, quick(1, 1, 5));
  double ops = 0, phases = 0;
  for (const TraceRow& row : rows_by_op(trace)) {
    ops += row.milliseconds;
  }
  for (const TraceRow& row : rows_by_phase(trace)) {
    phases += row.milliseconds;
  }
  const double step = trace.duration() * 1e-3 / 5;
  EXPECT_NEAR(ops, step, 1e-6 * step);
  EXPECT_NEAR(phases, step, 1e-6 * step);
  const std::string tables = trace_tables(trace);
  for (const char* words : {"By op, per step", "By module, per step", "linear", "loader queue"}) {
    EXPECT_NE(tables.find(words), std::string::npos) << words << "\n" << tables;
  }
}

TEST(Profiler, HasTheAllocatorsOwnNumbers) {
  Profiler profiler(quick(0, 0, 1));
  profiler.record();
  const MemoryStats before = memory_stats();
  int64_t inside = 0;
  {
    const Tensor kept = empty({1000, 1000});
    inside = memory_stats().allocated;
  }
  const MemoryStats after = memory_stats();
  profiler.finish();
  std::vector<double> allocated;
  double reserved = 0;
  for (const TraceCounter& counter : profiler.trace().counters) {
    if (counter.name == "allocated") {
      allocated.push_back(counter.value);
    } else if (counter.name == "reserved") {
      reserved = counter.value;
    }
  }
  EXPECT_EQ(allocated, (std::vector<double>{double(before.allocated), double(inside),
                                            double(after.allocated)}));
  EXPECT_EQ(reserved, double(after.reserved));
}

TEST(Profiler, SeesTheStagesOfWorkers) {
  const Trace trace = trace_of(8, quick(0, 0, 8), 2);
  int workers = 0;
  for (const TraceLane& lane : trace.lanes) {
    workers += lane.name.starts_with("loader worker") ? 1 : 0;
  }
  EXPECT_GE(workers, 1);
  EXPECT_FALSE(events_of(trace, Kind::data, "decode").empty());
  EXPECT_FALSE(events_of(trace, Kind::data, "collate").empty());
  const Trace alone = trace_of(4, quick(0, 0, 4), 0);
  for (const TraceEvent* event : events_of(alone, Kind::data, "decode")) {
    EXPECT_EQ(event->lane, 0);
  }
}

TEST(Profiler, RecordsOnlyTheActivitiesThatItIsAskedFor) {
  ProfilerOptions options = quick(0, 0, 3);
  options.activities = static_cast<Activities>(Activity::memory);
  const Trace trace = trace_of(3, options);
  EXPECT_EQ(trace.steps().size(), 3U);
  EXPECT_EQ(trace.events.size(), 3U);
  EXPECT_FALSE(trace.counters.empty());
  options.activities = Activity::cpu | Activity::data;
  const Trace other = trace_of(3, options);
  EXPECT_FALSE(events_of(other, Kind::op, "linear").empty());
  for (const TraceCounter& counter : other.counters) {
    EXPECT_NE(counter.name, "allocated");
  }
}

TEST(Profiler, RepeatsItsScheduleAndWritesNumberedFiles) {
  const TemporaryDirectory folder;
  ProfilerOptions options = quick(1, 0, 2, 2);
  options.file = folder / "trace.json";
  options.flame = folder / "flame.svg";
  options.tensorboard = folder / "board";
  Training training;
  Profiler profiler(options);
  for (int i = 0; i < 6; ++i) {
    training.step(&profiler);
  }
  EXPECT_TRUE(profiler.is_over());
  EXPECT_EQ(profiler.windows(), 2);
  EXPECT_EQ(read_trace(folder / "trace.json").first_step, 1);
  const Trace second = read_trace(folder / "trace-2.json");
  EXPECT_EQ(second.first_step, 4);
  EXPECT_EQ(second, profiler.trace());
  EXPECT_EQ(list_directory(folder / "board").size(), 2U);
  const std::vector<std::byte> flame = read_file(folder / "flame.svg");
  const std::string svg(reinterpret_cast<const char*>(flame.data()), flame.size());
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("<title>first: "), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos);
}

TEST(Profiler, CountsWhatItDrops) {
  ProfilerOptions options = quick(0, 0, 3);
  options.max_events = 10;
  const Trace trace = trace_of(3, options);
  EXPECT_EQ(trace.events.size() + trace.counters.size(), 10U);
  EXPECT_GT(trace.dropped, 50);
  EXPECT_NE(trace_tables(trace).find("had no room"), std::string::npos);
  const Trace whole = trace_of(3, quick(0, 0, 3));
  const std::string cut = trace_json(whole, {.max_bytes = 5000});
  const Trace read = parse_trace(cut, "cut");
  EXPECT_LT(cut.size(), 9000U);
  EXPECT_EQ(read.steps().size(), 3U);
  EXPECT_EQ(read.dropped, static_cast<int64_t>(whole.events.size() + whole.counters.size() -
                                               read.events.size() - read.counters.size()));
}

TEST(Profiler, DoesNotChangeWhatRuns) {
  const auto weights = [](bool profiled) {
    manual_seed(5);
    Training training;
    std::unique_ptr<Profiler> profiler;
    if (profiled) {
      profiler = std::make_unique<Profiler>(quick(0, 0, 4));
    }
    for (int i = 0; i < 4; ++i) {
      training.step(profiler.get());
    }
    return training.net.first.weight.to_vector<float>();
  };
  EXPECT_EQ(weights(true), weights(false));
  Profiler profiler(quick(0, 0, 1));
  profiler.record();
  EXPECT_FALSE(binade::detail::observers_read_values());
  profiler.finish();
}

TEST(Profiler, LabelsCodeOfTheUser) {
  Profiler profiler(quick(0, 0, 1));
  profiler.record();
  int line = 0;
  {
    const ProfileLabel label(std::string("my ") + "part");
    line = __LINE__ - 1;
    const PhaseSpan phase("evaluation");
    ones({3}) + ones({3});
  }
  profiler.finish();
  const auto labels = events_of(profiler.trace(), Kind::user, "my part");
  ASSERT_EQ(labels.size(), 1U);
  const auto adds = events_of(profiler.trace(), Kind::op, "add");
  ASSERT_EQ(adds.size(), 1U);
  EXPECT_EQ(adds[0]->phase, "evaluation");
  EXPECT_GE(adds[0]->begin, labels[0]->begin);
  EXPECT_LE(adds[0]->end, labels[0]->end);
  EXPECT_TRUE(labels[0]->note.ends_with(text("profiler_test.cpp:", line))) << labels[0]->note;
  const std::vector<TraceRow> lines = rows_by_line(profiler.trace());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].name, labels[0]->note);
  EXPECT_EQ(lines[0].detail, "my part");
  EXPECT_NEAR(lines[0].milliseconds, (labels[0]->end - labels[0]->begin) * 1e-3, 1e-9);
  EXPECT_NE(trace_tables(profiler.trace()).find("By source line"), std::string::npos);
}

TEST(Profiler, FollowsTheTrainer) {
  data::test::FakeDataset data(48);
  data::Loader loader(data, {.batch = 4, .workers = 1, .seed = 3});
  Net net;
  optim::SGD sgd(net.parameters(), {.lr = 0.01});
  Profiler profiler(quick(2, 1, 5));
  Trainer trainer({.model = net, .optimizer = sgd}, {.epochs = 1, .progress = false});
  trainer.fit(loader);
  EXPECT_EQ(profiler.steps(), 12);
  const Trace& trace = profiler.trace();
  ASSERT_EQ(trace.steps().size(), 5U);
  for (const char* phase : {"data", "forward", "backward", "optimizer"}) {
    EXPECT_EQ(events_of(trace, Kind::phase, phase).size(), 5U) << phase;
  }
}

TEST(Profiler, LeavesStepsOfOtherThreadsAlone) {
  Profiler profiler(quick(0, 0, 2));
  profile_step();
  std::thread([] { profile_step(); }).join();
  EXPECT_EQ(profiler.steps(), 1);
}

TEST(Profiler, RefusesWrongUseInOneSentence) {
  Profiler profiler(quick(0, 0, 1));
  EXPECT_NE(error_of([] { Profiler second; }).find("one at a time"), std::string::npos);
  EXPECT_NE(error_of([] { Profiler none({.active = 0}); }).find("active 0"), std::string::npos);
  for (const char* wrong :
       {"", "x", "0", "1,2", "1,2,3,4,5", "-1", "1,2,", "1,,3", "99999999999"}) {
    EXPECT_NE(error_of([&] { parse_profile_window(wrong); }).find("--profile: got '"),
              std::string::npos)
        << wrong;
  }
  EXPECT_EQ(parse_profile_window("7").active, 7);
  EXPECT_EQ(parse_profile_window("1,2,3").warmup, 2);
  EXPECT_EQ(parse_profile_window("1,2,3,0").repeat, 0);
}

TEST(TraceFile, RefusesOtherFiles) {
  const std::string good = trace_json(trace_of(2, quick(0, 0, 2)));
  EXPECT_EQ(trace_json(parse_trace(good, "good")), good);
  const auto message = [](const std::string& json) {
    return error_of([&] { parse_trace(json, "file"); });
  };
  EXPECT_NE(message("{\"traceEvents\": []}").find("another program"), std::string::npos);
  EXPECT_NE(message("[").find("trace: file: "), std::string::npos);
  for (const auto& [from, to] : {std::pair("\"ph\": \"X\"", "\"ph\": \"Q\""),
                                 {"\"dur\": ", "\"dur\": -"},
                                 {"\"cat\": \"phase\"", "\"cat\": \"new\""},
                                 {"\"version\": 1", "\"version\": 9"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    EXPECT_NE(message(bad).find("trace: file"), std::string::npos) << to;
  }
}

}  // namespace
}  // namespace binade::train::profiler_test
