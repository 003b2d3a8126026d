// Reads the records of a run: run.json, timeline.jsonl, the page, differences.
#include <binade/core/device/memory.h>
#include <binade/core/io/file_system.h>
#include <binade/core/observe/warning.h>
#include <binade/train/profiler.h>
#include <binade/train/report/page.h>
#include <binade/train/report/run_diff.h>
#include <binade/train/report/run_report.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop/toy_run.h"

namespace binade::train::run_report_test {
namespace {

namespace fs = std::filesystem;
using binade::testing::TemporaryDirectory;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The page must contain nothing that a browser would fetch, and no markup from the data.
void expect_safe(const std::string& page) {
  for (const char* outside : {"http:", "https:", "src=", "<link", "url(", "@import", "<img"}) {
    EXPECT_FALSE(has(page, outside)) << outside;
  }
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_TRUE(has(page, "prefers-color-scheme: dark"));
  EXPECT_FALSE(has(page, "<b>evil"));
  EXPECT_LE(page.size(), kMostReportBytes);
}

Curve ramp(int64_t points) {
  Curve curve;
  for (int64_t i = 0; i < points; ++i) {
    curve.step.push_back(static_cast<double>(i));
    curve.value.push_back(1 + std::sin(static_cast<double>(i) * 0.37));
  }
  return curve;
}

TEST(RunReport, DownsamplingKeepsExtremesEndsAndWhatIsNotFinite) {
  Curve curve = ramp(1'000'003);
  curve.value[123'457] = 1e9;
  curve.value[777'777] = -1e9;
  curve.value[500'001] = std::numeric_limits<double>::quiet_NaN();
  curve.value[500'002] = std::numeric_limits<double>::infinity();
  const Curve small = downsampled(curve, 300);
  EXPECT_LE(small.step.size(), 300U * 5);
  EXPECT_EQ(small.step.size(), small.value.size());
  EXPECT_EQ(small.most_finite(), 1e9);
  EXPECT_EQ(small.least_finite(), -1e9);
  EXPECT_EQ(small.step.front(), 0);
  EXPECT_EQ(small.step.back(), 1'000'002);
  EXPECT_TRUE(std::is_sorted(small.step.begin(), small.step.end()));
  EXPECT_TRUE(std::any_of(small.value.begin(), small.value.end(),
                          [](double v) { return !std::isfinite(v); }));
  EXPECT_EQ(downsampled(ramp(100), 300).step.size(), 100U);  // short curves are kept
}

TEST(RunReport, MillionsOfStepsAndManyRunsFitIntoFiveMegabytes) {
  RunRecord run{.path = "run", .name = "run"};
  for (const char* key : {"train_loss", "learning_rate", "loss_scale", "gradient_norm"}) {
    run.steps[key] = ramp(1'000'000);
  }
  for (int i = 0; i < 300; ++i) {
    run.epochs["train_metric" + std::to_string(i)] = ramp(2000);
    run.settings.emplace_back("setting " + std::to_string(i), std::string(10'000, 'x'));
  }
  expect_safe(report_page({run}));
  std::vector<RunRecord> many(kMostReportRuns, run);
  expect_safe(report_page(many));
  many.push_back(run);
  EXPECT_TRUE(has(error_of([&] { report_page(many); }), "expected 1 to 24"));
}

// On such axes the ticks are further apart than doubles can represent, or just as far.
TEST(RunReport, HugeNumbersAreDrawn) {
  const std::vector<double> cases[] = {
      {1e20, 1e20}, {-1e308, 1e308}, {1e17, 1e17 + 16}, {0, 5e-324}};
  for (const std::vector<double>& values : cases) {
    RunRecord record{.path = "run", .name = "run"};
    record.steps["train_loss"] = {.step = {1, 9007199254740992}, .value = values};
    const std::string page = report_page({record});
    expect_safe(page);
    EXPECT_TRUE(has(page, "id=\"loss\"")) << values[1];
  }
}

// A trace of two steps of 2 ms, each with one op of 1.5 ms.
Trace trace_with(const std::string& op) {
  Trace trace;
  trace.lanes = {{"main", false}};
  for (const double begin : {0.0, 2000.0}) {
    trace.events.push_back({.kind = TimelineEvent::step,
                            .name = "ProfilerStep#0",
                            .phase = "",
                            .module = "",
                            .note = "",
                            .begin = begin,
                            .end = begin + 2000});
    trace.events.push_back({.kind = TimelineEvent::op,
                            .name = op,
                            .phase = "forward",
                            .module = "",
                            .note = "",
                            .begin = begin,
                            .end = begin + 1500,
                            .flops = 3e6});
  }
  return trace;
}

TEST(RunReport, BrokenLinesNaNAndMarkupAreReadAndEscaped) {
  const TemporaryDirectory folder;
  const std::string run = folder.path() + "/run <b>evil";
  write(run + "/metrics.jsonl",
        "{\"epoch\":0,\"step\":1,\"train_loss\":2}\n"
        "not json\n"
        "[1,2]\n"
        "{\"epoch\":0,\"step\":2,\"train_loss\":null}\n"
        "{\"epoch\":0,\"step\":3,\"train_loss\":1,\"</script><b>evil\":4}\n"
        "{\"epoch\":0,\"step\":4,\"train_loss\":1.5,\"validation_loss\":3,\"precision\":\"<b>"
        "evil\"}\n"
        "{\"epoch\":1,\"step\":5,\"train_l");
  write(run + "/run.json",
        "{\"settings\":{\"<b>evil\":\"</td><b>evil & co\"},\"outcome\":\"\\u001b[2J\"}");
  write(run + "/lens.jsonl", "{}\n");
  write(run + "/trace.json", trace_json(trace_with("conv2d <b>evil")));
  write(run + "/checkpoint/step-00000003/manifest.json", "{");
  const RunRecord record = read_run(run);
  EXPECT_EQ(record.step, 4);
  const Curve& loss = record.steps.at("train_loss");
  ASSERT_EQ(loss.value.size(), 3U);
  EXPECT_TRUE(std::isnan(loss.value[1]));
  EXPECT_EQ(record.epochs.at("validation_loss").last(), 3);
  ASSERT_EQ(record.ops.size(), 2U);  // the op, and the time outside of ops
  EXPECT_EQ(record.ops[0].name, "conv2d <b>evil");
  EXPECT_EQ(record.ops[0].calls, 1);
  EXPECT_DOUBLE_EQ(record.ops[0].milliseconds, 1.5);
  EXPECT_EQ(record.traced_steps, 2);
  EXPECT_DOUBLE_EQ(record.step_milliseconds, 2);
  ASSERT_EQ(record.notes.size(), 2U);  // for metrics and for the lens
  EXPECT_TRUE(has(record.notes[0], "2 lines of 7")) << record.notes[0];
  ASSERT_EQ(record.checkpoints.size(), 1U);
  EXPECT_NE(record.checkpoints[0].note, "");
  const std::string page = report_page({record});
  expect_safe(page);
  EXPECT_TRUE(has(page, "not finite"));
  EXPECT_TRUE(has(page, "conv2d &lt;b&gt;evil"));
  EXPECT_TRUE(has(page, "2 lines of 7"));
}

TEST(RunReport, ADirectoryThatIsNoRunIsRefused) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(has(error_of([&] { read_run(folder.path()); }), "without metrics.jsonl"));
  EXPECT_TRUE(has(error_of([&] { read_run(folder.path() + "/none"); }), "expected the directory"));
  EXPECT_FALSE(is_run(folder.path()));
}

TrainerOptions options_of(const std::string& run, int64_t epochs) {
  TrainerOptions options;
  options.run = run;
  options.epochs = epochs;
  options.log_every = 1;
  options.log_norms = true;
  options.settings = {{"note", "a"}};
  return options;
}

TEST(RunReport, ATrainerWritesItsRecordAndPage) {
  const TemporaryDirectory folder;
  const std::string run = folder.path() + "/run";
  toy::ToyRun toy(options_of(run, 3));
  toy.fit();
  const RunRecord record = read_run(run);
  EXPECT_EQ(record.outcome, "finished");
  EXPECT_EQ(record.step, 15);
  EXPECT_EQ(record.steps.at("train_loss").step.size(), 15U);
  EXPECT_EQ(record.epochs.at("validation_loss").step.size(), 3U);
  for (const char* key : {"reserved", "loss", "learning_rate", "loss_scale", "skipped_steps"}) {
    ASSERT_TRUE(record.timeline.contains(key)) << key;
    EXPECT_FALSE(record.timeline.at(key).empty()) << key;
  }
  EXPECT_EQ(record.notes, std::vector<std::string>());
  EXPECT_FALSE(record.checkpoints.empty());
  const std::string page = text_of(run + "/report.html");
  expect_safe(page);
  for (const char* part :
       {"gradient_norm", "weight_norm", "learning_rate", "validation", "finished", "checkpoint",
        "note", "id=\"memory\"", "id=\"speed\"", "tabindex=\"0\""}) {
    EXPECT_TRUE(has(page, part)) << part;
  }
  const TrainerOptions none = [&] {
    TrainerOptions options = options_of(folder.path() + "/quiet", 1);
    options.report = false;
    return options;
  }();
  toy::ToyRun quiet(none);
  quiet.fit();
  for (const char* name : {"/run.json", "/timeline.jsonl", "/report.html"}) {
    EXPECT_TRUE(fs::exists(run + name)) << name;
    EXPECT_FALSE(fs::exists(folder.path() + "/quiet" + name)) << name;
  }
}

// Covers a window that ends within the run, and one that finish_profile() ends after it.
TEST(RunReport, ATracedRunShowsItsSlowestOps) {
  for (const char* window : {"1,1,5", "1,1,500"}) {
    const TemporaryDirectory folder;
    const std::string run = folder.path() + "/run";
    const auto profiler = profile_run(window, run, 0);
    toy::ToyRun(options_of(run, 3)).fit();
    finish_profile(profiler.get(), run);
    const RunRecord record = read_run(run);
    EXPECT_EQ(record.notes, std::vector<std::string>());
    EXPECT_EQ(record.outcome, "finished");
    EXPECT_GE(record.traced_steps, 5);
    EXPECT_TRUE(std::any_of(record.ops.begin(), record.ops.end(),
                            [](const TraceRow& row) { return row.name == "linear"; }));
    const std::string page = text_of(run + "/report.html");
    expect_safe(page);
    for (const char* part : {"id=\"ops\"", "<td>linear</td><td>backward</td>", "by module",
                             "advice: ", "step ", "finished"}) {
      EXPECT_TRUE(has(page, part)) << window << ": " << part;
    }
  }
  finish_profile(nullptr, "");  // when there is no profiler
}

TEST(RunReport, AFailedRunSaysWhyAndAResumedOneGoesOn) {
  const TemporaryDirectory folder;
  const std::string run = folder.path() + "/run";
  TrainerOptions options = options_of(run, 4);
  options.callbacks = {
      {.epoch_start = [](const RunView& view) { check(view.epoch < 2, "planted <b>evil"); }}};
  EXPECT_TRUE(has(error_of([&] { toy::ToyRun(options).fit(); }), "planted"));
  const RunRecord failed = read_run(run);
  EXPECT_TRUE(has(failed.outcome, "failed: planted"));
  expect_safe(text_of(run + "/report.html"));
  TrainerOptions again = options_of(run, 4);
  again.resume = true;
  toy::ToyRun(again).fit();
  const RunRecord resumed = read_run(run);
  EXPECT_EQ(resumed.outcome, "finished");
  EXPECT_EQ(resumed.started, failed.started);
  EXPECT_EQ(resumed.step, 20);
  const Curve& seconds = resumed.timeline.at("seconds");
  EXPECT_TRUE(std::is_sorted(seconds.value.begin(), seconds.value.end()));
  EXPECT_TRUE(std::is_sorted(seconds.step.begin(), seconds.step.end()));
}

TEST(OutOfMemory, SaysWhoHeldWhatAndWhichBatchFits) {
  TrainerOptions options;
  options.epochs = 1;
  options.step = [](nn::Module& model, const data::Batch& batch) {
    const Tensor wide = matmul(batch["x"], full({toy::kInputs, 4000}, 0.5));  // 128 kB
    const StepOutput output = toy::regression_step(model, batch);
    return StepOutput{.loss = output.loss + sum(wide) * 0.0, .output = output.output};
  };
  const TrainerOptions plain = options;
  int calls = 0;
  options.step = [&](nn::Module& model, const data::Batch& batch) {
    if (++calls == 3) {
      fail_allocation(2);
    }
    return plain.step(model, batch);
  };
  toy::ToyRun failing(options);
  const std::string error = error_of([&] { failing.fit(); });
  EXPECT_TRUE(has(error, "out of memory on cpu")) << error;
  EXPECT_TRUE(has(error, "(in step 1, batch 8: weights ")) << error;
  EXPECT_TRUE(has(error, "outside of modules")) << error;
  EXPECT_TRUE(has(error, "by forecast a batch of ")) << error;
}

// Keeps the loss of each step with its graph.
TEST(OutOfMemory, AKeptGraphIsNamedBeforeTheMemoryIsGone) {
  struct Wide : nn::Module {
    nn::Linear first{*this, "first", {.in = toy::kInputs, .out = 40'000}};
    nn::Linear last{*this, "last", {.in = 40'000, .out = 1}};
    Tensor forward(const Tensor& x) override { return last(relu(first(x))); }
  } model;
  std::string warnings;
  const WarningHandler before =
      set_warning_handler([&warnings](const std::string& words) { warnings += words + "\n"; });
  std::vector<Tensor> kept;
  TrainerOptions options;
  options.epochs = 14;
  options.patience = 0;
  options.step = [&kept](nn::Module& net, const data::Batch& batch) {
    const Tensor loss = mse_loss(net(batch["x"]), batch["y"]);
    kept.push_back(mse_loss(net(batch["x"]), batch["y"]));  // no backward frees this graph
    return loss;
  };
  toy::ToyRun run(options, model, nullptr);
  run.fit();
  set_warning_handler(before);
  EXPECT_TRUE(has(warnings, "trainer: memory grows, ")) << warnings;
  EXPECT_TRUE(has(warnings, "more after each step")) << warnings;
  // relu() is called in the forward of the root module, whose path is empty.
  EXPECT_TRUE(has(warnings, "outside of modules: ")) << warnings;
}

TEST(RunDiff, EqualRunsAreTheSameAndOthersNameTheFirstStepAndTensor) {
  const TemporaryDirectory folder;
  const auto train = [&](const std::string& name, double lr, const std::string& note) {
    TrainerOptions options = options_of(folder.path() + "/" + name, 2);
    options.settings["note"] = note;
    manual_seed(5);
    toy::ToyRun toy(options);
    toy.adam.set_lr(lr);
    toy.fit();
    return read_run(folder.path() + "/" + name);
  };
  const RunRecord a = train("a", 0.02, "x"), b = train("b", 0.02, "x"), c = train("c", 0.5, "y");
  const RunDiff same = diff_runs(a, b);
  EXPECT_TRUE(same.same()) << to_text(same, a, b);
  EXPECT_GT(same.equal_curves, 4);
  const RunDiff other = diff_runs(a, c);
  EXPECT_FALSE(other.same());
  ASSERT_FALSE(other.curves.empty());
  EXPECT_EQ(other.curves[0].step, 1);  // the learning rate of the first step
  ASSERT_TRUE(other.tensor);
  EXPECT_EQ(other.tensor->step, 5);
  EXPECT_GT(other.tensor->most, 0);
  const std::string words = to_text(other, a, c);
  EXPECT_TRUE(has(words, "setting note\n  A x\n  B y")) << words;
  EXPECT_TRUE(has(words, "the first tensor that differs: ")) << words;
  const std::string page = report_page({a, b, c});
  expect_safe(page);
  EXPECT_TRUE(has(page, "Settings that differ"));
  EXPECT_TRUE(has(page, "3 runs"));
}

}  // namespace
}  // namespace binade::train::run_report_test
