// The rules of the stall adviser. Each compares the step with the one that would be left without
// the stall; docs/profiling.md states the formulas.
#include <binade/kernels/base/error.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profile/step_times_internal.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace binade::train {
namespace {

constexpr double kWorthwhile = 0.05;  // a gain below is not told

int64_t cores_of(const Trace& trace) {
  const auto found = trace.facts.find("cores");
  constexpr long kMost = 4096;  // a trace may say anything
  return found == trace.facts.end()
             ? 1
             : std::clamp(std::strtol(found->second.c_str(), nullptr, 10), 1L, kMost);
}

double gain(double before, double after) { return after > 0 ? before / after - 1 : 0; }

// data --------------------------------------------------------------------------------------------

struct Stage {
  const char* name;
  double milliseconds;
  const char* remedy;
};

Stage largest_stage(const LoaderTimes& loader) {
  const Stage stages[] = {
      {"read", loader.read, "put the files on a faster disk, or pack them into fewer files"},
      {"decode", loader.decode,
       "store smaller pictures, let LoaderOptions::reducing_gap decode them smaller, or keep them "
       "decoded (cache_bytes)"},
      {"transform", loader.transform, "do fixed steps once, before training, or fewer of them"},
      {"collate", loader.collate, "use the default collate, or smaller samples"}};
  return *std::max_element(
      std::begin(stages), std::end(stages),
      [](const Stage& a, const Stage& b) { return a.milliseconds < b.milliseconds; });
}

// A step takes as long as its own work, as the workers need for a batch, or as the cores need for
// the work of all threads, whichever is the longest. `saved` milliseconds of the workers fall away.
double step_with(const StepTimes& t, double own, int64_t workers, int64_t cores, double saved = 0) {
  const double of_workers = (t.loader.total() - saved) / static_cast<double>(workers);
  const double of_cores = (t.cpu - saved) / static_cast<double>(cores);
  return std::max({own, of_workers, of_cores});
}

void advise_on_data(const StepTimes& t, int64_t cores, std::vector<Advice>& out) {
  const bool alone = t.loader.workers == 0;
  const double stalled = alone ? t.loader.total() : t.times.wait;
  if (stalled < kWorthwhile * t.whole || t.loader.total() <= 0) {
    return;
  }
  const double own = t.whole - stalled;
  const int64_t now = t.loader.workers;
  int64_t best = now;
  double least = t.whole;
  for (int64_t workers = now + 1; workers <= cores; ++workers) {
    if (const double time = step_with(t, own, workers, cores); time < 0.97 * least) {
      best = workers;
      least = time;
    }
  }
  const Stage stage = largest_stage(t.loader);
  if (best > now && gain(t.whole, least) >= kWorthwhile) {
    out.push_back(
        {.cause = "workers",
         .sentence = text("workers ", now, " -> ", best, ": predicted +",
                          percent_of(gain(t.whole, least), 0), "; a step waits ",
                          percent_of(stalled / t.whole, 0), " of its time for data, most of it ",
                          stage.name, " (LoaderOptions::workers)"),
         .where = "LoaderOptions::workers",
         .gain = gain(t.whole, least),
         .setting = "workers",
         .value = best});
    return;
  }
  const bool every_core_is_busy = t.cpu > 0.9 * t.whole * static_cast<double>(cores);
  // Without workers the loader's time is added to that of the step.
  const double saved = stage.milliseconds / 2;
  const double halved =
      gain(t.whole, alone ? t.whole - saved : step_with(t, own, now, cores, saved));
  out.push_back({.cause = stage.name,
                 .sentence = text(stage.name, " takes ", fixed(stage.milliseconds), " of the ",
                                  fixed(t.loader.total()),
                                  " ms that the workers need per batch, and a "
                                  "step waits ",
                                  percent_of(stalled / t.whole, 0), " of its time for them",
                                  every_core_is_busy ? ", while every core is busy: " : ": ",
                                  stage.remedy, "; half of it would give +", percent_of(halved, 0)),
                 .where = "data::Dataset::get",
                 .gain = halved});
}

// the host ----------------------------------------------------------------------------------------

void advise_on_waits(const StepTimes& t, std::vector<Advice>& out) {
  for (const auto& [key, wait] : t.waits) {
    const double share = wait.milliseconds / t.whole;
    if (share >= 0.02) {
      out.push_back(
          {.cause = "host wait",
           .sentence = text(key.first, "()", key.second.empty() ? "" : " at " + key.second,
                            " waits for the device ", fixed(wait.calls), " times per step, ",
                            percent_of(share, 0),
                            " of it: read the value every so many steps, or keep it "
                            "on the device; predicted at most +",
                            percent_of(gain(t.whole, t.whole - wait.milliseconds), 0)),
           .where = key.second,
           .gain = gain(t.whole, t.whole - wait.milliseconds)});
    }
  }
  for (const auto& [key, copy] : t.pageable) {
    const double share = copy.milliseconds / t.whole;
    if (share >= 0.02) {
      out.push_back({.cause = "pageable copy",
                     .sentence = text(key.first, key.second.empty() ? "" : " at " + key.second,
                                      " moves ", fixed(copy.bytes * 1e-6),
                                      " MB per step from pageable memory, ", percent_of(share, 0),
                                      " of it: give LoaderOptions::device, or fill a "
                                      "PinnedBuffer; predicted at most +",
                                      percent_of(gain(t.whole, t.whole - copy.milliseconds), 0)),
                     .where = key.second,
                     .gain = gain(t.whole, t.whole - copy.milliseconds)});
    }
  }
}

// What does not depend on the batch: the cheapest ops, the time between ops, the update and the
// reduction. With twice the batch the rest takes twice as long.
void advise_on_batch(const StepTimes& t, std::vector<Advice>& out) {
  const double fixed_time = t.ops * t.typical_cheap + t.between_ops + t.times.optimizer;
  const double share = std::min(fixed_time / t.whole, 1.0);
  const double doubled = 2 / (2 - share) - 1;
  constexpr double kLeast = 0.35;  // of the step
  if (share < kLeast) {
    return;
  }
  const std::string change =
      t.batch > 0 ? text("batch ", t.batch, " -> ", 2 * t.batch) : "a batch twice as large";
  out.push_back({.cause = "batch",
                 .sentence = text(change, ": predicted +", percent_of(doubled, 0),
                                  " samples per second; ", percent_of(share, 0),
                                  " of a step does not depend on the batch: ", fixed(t.ops, 0),
                                  " ops of at least ", fixed(1000 * t.typical_cheap),
                                  " us, and the update (LoaderOptions::batch)"),
                 .where = "LoaderOptions::batch",
                 .gain = doubled,
                 .setting = t.batch > 0 ? "batch" : "",
                 .value = 2 * t.batch});
}

// memory and ranks --------------------------------------------------------------------------------

// True if the values rise in nearly every step, by at least `least` in all.
bool keeps_rising(const std::vector<double>& values, double least) {
  if (values.size() < 4) {
    return false;
  }
  size_t rises = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    rises += values[i] > values[i - 1] ? 1 : 0;
  }
  return rises * 10 >= (values.size() - 1) * 8 && values.back() - values.front() >= least;
}

std::string op_of_loss(const Trace& trace) {
  // The op whose backward begins first in a step made the loss.
  for (const TraceEvent& event : trace.events) {
    if (event.lane == 0 && event.kind == TimelineEvent::op && event.backward) {
      return event.name + (event.module.empty() ? "" : " in module " + event.module);
    }
  }
  return "the step";
}

void advise_on_memory(const StepTimes& t, const Trace& trace, std::vector<Advice>& out) {
  const auto per_step = [](const std::vector<double>& v) {
    return v.size() > 1 ? (v.back() - v.front()) / static_cast<double>(v.size() - 1) : 0.0;
  };
  const double bytes = per_step(t.allocated);
  if (keeps_rising(t.graph_nodes, 4)) {
    const std::string op = op_of_loss(trace);
    out.push_back(
        {.cause = "leak",
         .sentence = text("every step leaves ", fixed(per_step(t.graph_nodes), 0),
                          " graph nodes and ", fixed(bytes * 1e-6, 2),
                          " MB behind: a result with its graph is kept, most likely that of ", op,
                          "; keep item() or detach() of it instead"),
         .where = op});
  } else if (constexpr double kLeast = 1e5; keeps_rising(t.allocated, kLeast)) {
    out.push_back({.cause = "leak",
                   .sentence = text("memory grows by ", fixed(bytes * 1e-6, 2),
                                    " MB in every step: tensors are kept from step to step"),
                   .where = "tensors that the loop keeps"});
  }
}

void advise_on_ranks(std::span<const Trace> ranks, std::vector<Advice>& out) {
  if (ranks.size() < 2) {
    return;
  }
  double most = 0, sum = 0, whole = 0;
  int slowest = 0;
  for (const Trace& trace : ranks) {
    const StepTimes t = step_times(trace);
    const double busy = t.whole - t.times.reduction;
    sum += busy;
    whole = std::max(whole, t.whole);
    if (busy > most) {
      most = busy;
      slowest = trace.rank;
    }
  }
  const double others = (sum - most) / static_cast<double>(ranks.size() - 1);
  const double mean = sum / static_cast<double>(ranks.size());
  const double better = gain(whole, whole - (most - mean));
  if ((most - others) / whole < 2 * kWorthwhile) {
    return;
  }
  out.push_back({.cause = "ranks",
                 .sentence = text("rank ", slowest, " works ", fixed(most),
                                  " ms per step, the others ", fixed(others),
                                  " ms, which wait for it: give every rank the same "
                                  "work; predicted +",
                                  percent_of(better, 0)),
                 .where = text("rank ", slowest),
                 .gain = better});
}

StepShares shares_of(const StepTimes& t) {
  StepShares s = t.times;
  for (double* value : {&s.wait, &s.read, &s.decode, &s.transform, &s.collate, &s.copy, &s.forward,
                        &s.backward, &s.reduction, &s.optimizer, &s.host_waits, &s.other}) {
    *value = t.whole > 0 ? *value / t.whole : 0;
  }
  return s;
}

}  // namespace

StallReport find_stalls(std::span<const Trace> ranks) {
  check(!ranks.empty() && !ranks[0].steps().empty(),
        "stalls: got a trace without steps, expected some; call Profiler::step() after each one");
  const StepTimes t = step_times(ranks[0]);
  StallReport report{.shares = shares_of(t),
                     .loader = t.loader,
                     .step_milliseconds = t.whole,
                     .batch = t.batch,
                     .advice = {}};
  advise_on_data(t, cores_of(ranks[0]), report.advice);
  advise_on_waits(t, report.advice);
  advise_on_batch(t, report.advice);
  advise_on_ranks(ranks, report.advice);
  std::erase_if(report.advice, [](const Advice& a) { return a.gain < kWorthwhile; });
  std::stable_sort(report.advice.begin(), report.advice.end(),
                   [](const Advice& a, const Advice& b) { return a.gain > b.gain; });
  // A run that will be out of memory comes before one that could be faster.
  std::vector<Advice> all;
  advise_on_memory(t, ranks[0], all);
  all.insert(all.end(), report.advice.begin(), report.advice.end());
  report.advice = std::move(all);
  return report;
}

std::string to_text(const StallReport& report) {
  const StepShares& s = report.shares;
  const std::pair<const char*, double> parts[] = {
      {"wait for data", s.wait},    {"read", s.read},
      {"decode", s.decode},         {"transform", s.transform},
      {"collate", s.collate},       {"copy", s.copy},
      {"forward", s.forward},       {"backward", s.backward},
      {"reduction", s.reduction},   {"optimizer", s.optimizer},
      {"host waits", s.host_waits}, {"other", s.other}};
  std::string out = text("step ", fixed(report.step_milliseconds, 2), " ms:");
  const char* separator = " ";
  for (const auto& [name, share] : parts) {
    if (share >= 0.005) {
      out += text(separator, name, " ", fixed(100 * share), "%");
      separator = ", ";
    }
  }
  if (report.loader.workers > 0) {
    const LoaderTimes& l = report.loader;
    out +=
        text("\nloader: ", l.workers, l.workers == 1 ? " worker" : " workers", ", per step read ",
             fixed(l.read, 2), " ms, decode ", fixed(l.decode, 2), " ms, transform ",
             fixed(l.transform, 2), " ms, collate ", fixed(l.collate, 2), " ms");
  }
  out += "\n";
  if (report.advice.empty()) {
    return out +
           "advice: nothing stalls the step by 5% or more; the tables of the trace show its "
           "slowest ops\n";
  }
  out += "advice: " + report.advice[0].sentence + "\n";
  for (size_t i = 1; i < report.advice.size(); ++i) {
    out += "then: " + report.advice[i].sentence + "\n";
  }
  return out;
}

}  // namespace binade::train
