// Runs the stall adviser on traces written by tests: it must name each planted bottleneck first.
#include <binade/train/profile/stalls.h>
#include <binade/train/profile/trace_rows_internal.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <string>

#include "tests/support/error_of.h"

namespace binade::train::stalls_test {
namespace {

using Kind = TimelineEvent::Kind;

// Twenty steps, each beginning where the one before ended; times in milliseconds.
struct Script {
  double wait = 0.1, forward = 4, backward = 8, optimizer = 1, reduction = 0;
  int workers = 2;
  double decode = 5;  // of all workers together, per step
  double read = 0.2;
  int ops = 20;  // per step
  double leak = 0, nodes = 0;
  double cpu = 0;         // processor time of all threads, per step
  TraceEvent extra = {};  // at the start of each forward
  int rank = 0;
};

class Writer {
 public:
  explicit Writer(const Script& script) : script_(script) {
    trace_.rank = script.rank;
    trace_.lanes = {{"main", false}};
    for (int i = 0; i < script.workers; ++i) {
      trace_.lanes.push_back({"loader worker", false});
    }
    trace_.facts = {{"cores", "4"}};
  }
  Trace write() {
    for (int i = 0; i < 20; ++i) {
      step(i);
    }
    std::stable_sort(trace_.events.begin(), trace_.events.end(), is_before);
    return trace_;
  }

 private:
  void add(Kind kind, const std::string& name, double begin, double milliseconds, int lane = 0,
           const std::string& phase = "") {
    trace_.events.push_back({.kind = kind,
                             .backward = phase == "backward",
                             .lane = lane,
                             .name = name,
                             .phase = phase,
                             .module = "",
                             .note = "",
                             .begin = begin,
                             .end = begin + 1000 * milliseconds});
  }
  void ops(const std::string& phase, double begin, double milliseconds) {
    const int count = script_.ops / 2;
    const double cheap = milliseconds / count / 4;  // for half of the ops; the others take the rest
    double at = begin;
    for (int i = 0; i < count; ++i) {
      const double time =
          i % 2 == 0 ? cheap : (milliseconds - cheap * (count + 1) / 2) / (count / 2);
      add(Kind::op, "linear", at, time, 0, phase);
      at += 1000 * time;
    }
  }
  void step(int number) {
    const Script& s = script_;
    const double begin = now_;
    double at = begin;
    if (s.workers > 0) {
      add(Kind::phase, "data", at, s.wait);
      add(Kind::data, "wait for a batch", at, s.wait);
    } else {
      add(Kind::phase, "data", at, s.decode + s.read);
      add(Kind::data, "decode", at, s.decode + s.read);
      add(Kind::data, "read", at, s.read);
    }
    at += 1000 * (s.workers > 0 ? s.wait : s.decode + s.read);
    add(Kind::phase, "forward", at, s.forward);
    if (!s.extra.name.empty()) {
      TraceEvent extra = s.extra;
      extra.end = at + extra.end - extra.begin;
      extra.begin = at;
      trace_.events.push_back(extra);
      ops("forward", extra.end, s.forward - (extra.end - at) / 1000);
    } else {
      ops("forward", at, s.forward);
    }
    at += 1000 * s.forward;
    add(Kind::phase, "backward", at, s.backward);
    ops("backward", at, s.backward);
    at += 1000 * s.backward;
    add(Kind::phase, "reduction", at, s.reduction);
    at += 1000 * s.reduction;
    add(Kind::phase, "optimizer", at, s.optimizer);
    at += 1000 * s.optimizer;
    add(Kind::step, "ProfilerStep#" + std::to_string(number), begin, (at - begin) / 1000);
    for (int lane = 1; lane <= s.workers; ++lane) {
      add(Kind::data, "decode", begin, (s.decode + s.read) / s.workers, lane);
      add(Kind::data, "read", begin, s.read / s.workers, lane);
    }
    trace_.counters.push_back({"allocated", "", at - 1, 1e6 + s.leak * number});
    trace_.counters.push_back({"live graph nodes", "", at - 1, 50 + s.nodes * number});
    trace_.counters.push_back({"batch", "", at - 1, 32});
    if (s.cpu > 0) {
      trace_.counters.push_back({kCpuTime, "", at - 1, s.cpu * number});
    }
    now_ = at;
  }

  Script script_;
  Trace trace_;
  double now_ = 0;
};

StallReport report_of(const Script& script) {
  const Trace trace = Writer(script).write();
  return find_stalls({&trace, 1});
}

std::string first_cause(const Script& script) {
  const StallReport report = report_of(script);
  return report.advice.empty() ? "none" : report.advice[0].cause;
}

TraceEvent extra_event(Kind kind, const std::string& name, const std::string& note,
                       double milliseconds, double bytes = 0) {
  return {.kind = kind,
          .lane = 0,
          .name = name,
          .phase = "forward",
          .module = "",
          .note = note,
          .begin = 0,
          .end = 1000 * milliseconds,
          .bytes = bytes};
}

TEST(Stalls, SharesAreThoseOfTheStep) {
  const StallReport report = report_of({.wait = 7, .forward = 4, .backward = 8, .optimizer = 1});
  EXPECT_NEAR(report.step_milliseconds, 20, 1e-6);
  EXPECT_NEAR(report.shares.wait, 0.35, 1e-6);
  EXPECT_NEAR(report.shares.forward, 0.2, 1e-6);
  EXPECT_NEAR(report.shares.backward, 0.4, 1e-6);
  EXPECT_NEAR(report.shares.optimizer, 0.05, 1e-6);
  EXPECT_EQ(report.loader.workers, 2);
  EXPECT_NEAR(report.loader.decode, 5, 1e-6);
  EXPECT_NEAR(report.loader.read, 0.2, 1e-6);
  EXPECT_EQ(report.batch, 32);
}

TEST(Stalls, NothingIsToldOfAStepThatComputes) {
  EXPECT_EQ(first_cause({}), "none");
  EXPECT_NE(to_text(report_of({})).find("nothing stalls"), std::string::npos);
}

TEST(Stalls, TooFewWorkers) {
  // One worker needs 26 ms per batch and a step takes 13 ms: two workers hide all of it.
  const StallReport report = report_of({.wait = 13, .workers = 1, .decode = 25.8});
  ASSERT_FALSE(report.advice.empty());
  const Advice& advice = report.advice[0];
  EXPECT_EQ(advice.cause, "workers");
  EXPECT_EQ(advice.setting, "workers");
  EXPECT_EQ(advice.value, 2);
  EXPECT_NEAR(advice.gain, 1, 0.01);
  EXPECT_NE(advice.sentence.find("workers 1 -> 2: predicted +100%"), std::string::npos)
      << advice.sentence;
  // Without workers the loading time belongs to the step.
  EXPECT_EQ(first_cause({.workers = 0, .decode = 10}), "workers");
}

// One worker needs 26 ms per batch and a step takes 13 ms, but the four cores are busy.
TEST(Stalls, BusyCoresLeaveNothingToMoreWorkers) {
  const StallReport busy = report_of({.wait = 13, .workers = 1, .decode = 25.8, .cpu = 104.4});
  ASSERT_FALSE(busy.advice.empty());
  EXPECT_EQ(busy.advice[0].cause, "decode");
  EXPECT_NEAR(busy.advice[0].gain, 26.0 / ((104.4 - 12.9) / 4) - 1, 0.01);
  EXPECT_NE(busy.advice[0].sentence.find("every core is busy"), std::string::npos);
  // If half of the cores are idle, a second worker has its full gain; if fewer are, a part of it.
  EXPECT_NEAR(report_of({.wait = 13, .workers = 1, .decode = 25.8, .cpu = 52}).advice[0].gain, 1,
              0.01);
  const StallReport part = report_of({.wait = 13, .workers = 1, .decode = 25.8, .cpu = 80});
  EXPECT_EQ(part.advice[0].cause, "workers");
  EXPECT_NEAR(part.advice[0].gain, 26.0 / 20 - 1, 0.01);
}

TEST(Stalls, ASlowStageIfEveryCoreDecodes) {
  const StallReport report = report_of({.wait = 40, .workers = 4, .decode = 210});
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "decode");
  EXPECT_NEAR(report.advice[0].gain, 53.0 / 26.3 - 1, 0.02);
  EXPECT_EQ(first_cause({.wait = 40, .workers = 4, .decode = 10, .read = 200}), "read");
}

TEST(Stalls, AReadOfTheDeviceInEachStep) {
  Script script{.forward = 6};
  script.extra = extra_event(Kind::wait, "item", "train.cpp:40", 4);
  const StallReport report = report_of(script);
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "host wait");
  EXPECT_EQ(report.advice[0].where, "train.cpp:40");
  EXPECT_NEAR(report.shares.host_waits, 4 / 15.1, 1e-6);
  EXPECT_NE(report.advice[0].sentence.find("item() at train.cpp:40 waits for the device 1.0 times"),
            std::string::npos)
      << report.advice[0].sentence;
}

TEST(Stalls, ACopyFromPageableMemory) {
  Script script{.forward = 6};
  script.extra = extra_event(Kind::copy, "copy to the device", "pageable, train.cpp:31", 4, 4e6);
  const StallReport report = report_of(script);
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "pageable copy");
  EXPECT_EQ(report.advice[0].where, "train.cpp:31");
  EXPECT_NEAR(report.shares.copy, 4 / 15.1, 1e-6);
}

TEST(Stalls, ATinyBatch) {
  // Every op takes the same short time, and the update takes a third of the step.
  const StallReport report = report_of({.wait = 0.001,
                                        .forward = 0.2,
                                        .backward = 0.4,
                                        .optimizer = 0.3,
                                        .decode = 0.1,
                                        .read = 0.01});
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "batch");
  EXPECT_EQ(report.advice[0].value, 64);
}

TEST(Stalls, AKeptGraphComesFirst) {
  const StallReport report =
      report_of({.wait = 13, .workers = 1, .decode = 25.8, .leak = 3e5, .nodes = 9});
  ASSERT_GE(report.advice.size(), 2U);
  EXPECT_EQ(report.advice[0].cause, "leak");
  EXPECT_NE(report.advice[0].sentence.find("9 graph nodes and 0.30 MB"), std::string::npos)
      << report.advice[0].sentence;
  EXPECT_EQ(report.advice[1].cause, "workers");
  EXPECT_EQ(first_cause({.leak = 3e5}), "leak");
}

TEST(Stalls, ARankThatWorksLonger) {
  const Trace fast = Writer({.forward = 4, .backward = 8, .reduction = 12}).write();
  const Trace slow = Writer({.forward = 8, .backward = 16, .reduction = 0, .rank = 1}).write();
  const Trace both[] = {fast, slow};
  const StallReport report = find_stalls(both);
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "ranks");
  EXPECT_EQ(report.advice[0].where, "rank 1");
  EXPECT_NEAR(report.advice[0].gain, 25.1 / 19.1 - 1, 0.01);
  EXPECT_NEAR(report.shares.reduction, 12 / 25.1, 1e-6);
}

TEST(Stalls, NeedSteps) {
  const Trace none;
  EXPECT_NE(error_of([&] { find_stalls({&none, 1}); }).find("without steps"), std::string::npos);
}

}  // namespace
}  // namespace binade::train::stalls_test
