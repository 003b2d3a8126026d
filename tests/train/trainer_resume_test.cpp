// Tests resuming: a run that died at any point ends like one that did not, every item of its state
// matters, and what cannot be resumed is rejected by name. If BINADE_LONG is set, the long forms
// run.
#include <binade/core/io/crc32c.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/format_histories.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/run_directory.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/full_run.h"
#include "tests/train/scripted_run.h"

namespace binade::train::trainer_resume_test {
namespace {

namespace fs = std::filesystem;
using binade::testing::TemporaryDirectory;
using test::Warnings;

bool is_long() { return std::getenv("BINADE_LONG") != nullptr; }

std::string uninterrupted(const RunSetup& setup) {
  const TemporaryDirectory directory;
  FullRun run(directory / "run", false, setup);
  EXPECT_TRUE(run.fit());
  return record_of(directory / "run", run);
}

TEST(Resume, DyingAtAnyBatchChangesNothing) {
  const std::string expected = uninterrupted({});
  bool ended = false;
  int64_t at = 0;
  for (; !ended; ++at) {
    SCOPED_TRACE(text("died at batch ", at));
    const TemporaryDirectory directory;
    {
      FullRun run(directory / "run", false, {});
      ended = run.fit(at);
    }
    FullRun run(directory / "run", true,
                {.seed = at > 1 ? 99U : 5U, .workers = at % 3 == 0 ? 2 : 0});
    EXPECT_EQ(run.trainer->resumed(), at > 1);
    EXPECT_TRUE(run.fit());
    ASSERT_EQ(record_of(directory / "run", run), expected);
  }
  EXPECT_EQ(at, 3 * (6 + 2) + 1);
}

// The long form has 240 steps and more than 100 deaths.
TEST(Resume, DyingAgainAndAgainChangesNothing) {
  const RunSetup setup{.epochs = is_long() ? 80 : 6, .every = 2};
  const std::string expected = uninterrupted(setup);
  const TemporaryDirectory directory;
  std::mt19937 random(17);
  int deaths = 0;
  for (bool ended = false; !ended; ++deaths) {
    RunSetup again = setup;
    again.seed = deaths > 0 ? random() : setup.seed;
    again.workers = static_cast<int>(random() % 3);
    FullRun run(directory / "run", deaths > 0, again);
    ended = run.fit(5 + static_cast<int64_t>(random() % 5));
    if (ended) {
      EXPECT_EQ(record_of(directory / "run", run), expected);
    }
  }
  EXPECT_GT(deaths, is_long() ? 100 : 5);
  std::printf("%d deaths\n", deaths - 1);
}

RunSetup with_delayed_scales() {
  const FormatScheme scheme = format_scheme("e4m3fn/delayed=3");
  return {.precision = with_formats(Precision::mixed(DType::f16),
                                    {.weights = scheme,
                                     .activations = scheme,
                                     .gradients = format_scheme("e5m2/delayed=4")})};
}

// Delayed scales depend on earlier steps; evaluations do not change them.
TEST(Resume, DelayedScalesGoOnBitForBit) {
  const RunSetup setup = with_delayed_scales();
  const std::string expected = uninterrupted(setup);
  EXPECT_NE(expected, uninterrupted({}));
  for (const int64_t at : {2, 5, 8, 11, 20}) {
    SCOPED_TRACE(text("died at batch ", at));
    const TemporaryDirectory directory;
    EXPECT_FALSE(FullRun(directory / "run", false, setup).fit(at));
    RunSetup again = setup;
    again.seed = 99;
    FullRun run(directory / "run", true, again);
    EXPECT_TRUE(run.trainer->resumed());
    EXPECT_TRUE(run.fit());
    ASSERT_EQ(record_of(directory / "run", run), expected);
  }
}

// Changes a checkpoint and updates its checksums.
void forge(const std::string& path, const std::function<void(Manifest&)>& change) {
  Manifest manifest = read_manifest(path, file_system());
  change(manifest);
  for (auto& [name, record] : manifest.files) {
    const std::vector<std::byte> bytes = read_file(path + "/" + name);
    record = {bytes.size(), crc32c(bytes)};
  }
  std::ofstream(path + "/manifest.json", std::ios::binary) << manifest_text(manifest);
}

std::string newest(const std::string& run) {
  CheckpointStore store(run);
  return store.newest_verified()->path;
}

// A checkpoint from a version that did not save them is accepted: the histories start empty.
TEST(Resume, ACheckpointWithoutDelayedScalesIsTaken) {
  const RunSetup setup = with_delayed_scales();
  const std::string expected = uninterrupted(setup);
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  EXPECT_FALSE(FullRun(run, false, setup).fit(6 + 2 + 3));
  const std::string path = newest(run);
  EXPECT_EQ(read_manifest(path, file_system()).features,
            std::set<std::string>{kDelayedScalesFeature});
  fs::remove(path + "/scales.safetensors");
  forge(path, [](Manifest& m) {
    EXPECT_EQ(m.files.erase("scales.safetensors"), 1U);
    m.features.clear();
  });
  FullRun resumed(run, true, setup);
  EXPECT_TRUE(resumed.trainer->resumed());
  EXPECT_TRUE(nn::format_histories(*resumed.model).empty());
  EXPECT_TRUE(resumed.fit());
  EXPECT_NE(record_of(run, resumed), expected);  // so the histories matter
  const TemporaryDirectory plain;
  FullRun(plain / "run", false, {}).fit(4);
  EXPECT_TRUE(read_manifest(newest(plain / "run"), file_system()).features.empty());
}

// Returns the end of a run after one item of its state was changed.
std::string end_with(const std::string& stopped, const std::function<void(const std::string&)>& f) {
  const TemporaryDirectory directory;
  fs::copy(stopped, directory / "run", fs::copy_options::recursive);
  f(newest(directory / "run"));
  try {
    FullRun run(directory / "run", true, {});
    run.fit();
    return record_of(directory / "run", run);
  } catch (const Error& error) {
    return text("refused: ", error.what());
  }
}

TEST(Resume, EveryItemOfTheStateCounts) {
  const std::string expected = uninterrupted({});
  const TemporaryDirectory directory;
  const std::string stopped = directory / "run";
  FullRun(stopped, false, {}).fit(6 + 2 + 3);
  const Manifest manifest = read_manifest(newest(stopped), file_system());
  EXPECT_EQ(end_with(stopped, [](const std::string&) {}), expected);
  // The schedule sets the rate; best_epoch and bad_looks matter elsewhere; the scaler's own counts
  // are for reports, and overflows matter with a hysteresis above 1 (optim/scaler_state_test.cpp).
  const std::set<std::string> without_effect{"optimizer.lr.0", "best_epoch", "bad_looks",
                                             "scaler.skipped_steps", "scaler.overflows"};
  int items = 0;
  for (const auto& [name, value] : manifest.fields) {
    if (name.starts_with("setting.") || name.starts_with("stated.") || name.starts_with("data.") ||
        without_effect.contains(name)) {
      continue;
    }
    SCOPED_TRACE(text(name, " = ", value));
    const std::string other = value == "0" ? "3" : name == "global_batch" ? "6" : "0";
    EXPECT_NE(end_with(stopped,
                       [&](const std::string& path) {
                         forge(path, [&](Manifest& m) { m.fields[name] = other; });
                       }),
              expected);
    ++items;
  }
  std::set<std::string> masters;
  for (const auto& [name, tensor] : load_tensors(newest(stopped) + "/optimizer.safetensors")) {
    masters.insert(name);
  }
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const NamedTensors tensors = load_tensors(newest(stopped) + "/" + file);
    for (size_t i = 0; i < tensors.size(); ++i) {
      SCOPED_TRACE(text(file, " ", tensors[i].first));
      const std::string result = end_with(stopped, [&](const std::string& path) {
        NamedTensors changed = load_tensors(path + "/" + file);
        changed[i].second.fill_(0.5);
        save_tensors(path + "/" + file, changed);
        forge(path, [](Manifest&) {});
      });
      // A changed weight without effect must have a master, whose value it takes.
      EXPECT_TRUE(result != expected || masters.contains("master." + tensors[i].first));
      ++items;
    }
  }
  EXPECT_GT(items, 30);
}

TEST(Resume, ALoadThatFailsChangesNothing) {
  const TemporaryDirectory directory;
  FullRun(directory / "run", false, {}).fit(11);
  const auto damage = [&](const std::string& path) {  // one moment is missing
    NamedTensors tensors = load_tensors(path + "/optimizer.safetensors");
    tensors.pop_back();
    save_tensors(path + "/optimizer.safetensors", tensors);
    forge(path, [](Manifest&) {});
  };
  damage(newest(directory / "run"));
  manual_seed(7);
  Net model;
  model.to(Device{}, Precision::mixed(DType::f16));
  optim::AdamW adamw(model.parameters(), {.lr = 0.01});
  optim::LossScaler scaler{{.init_scale = 2}};
  optim::Schedule schedule = optim::WarmupCosine(adamw, {.warmup = 4, .total = 9});
  const auto state = [&] {
    return text(state_hash(model.state()), state_hash(adamw.state_tensors()), scaler.scale(), " ",
                generator().offset, " ", schedule.step(), " ", adamw.step_count());
  };
  const std::string before = state();
  const std::string error = error_of([&] {
    Trainer(
        {.model = model, .optimizer = adamw, .scaler = &scaler, .schedule = &schedule},
        {.epochs = 3, .clip_norm = 1, .run = directory / "run", .resume = true, .progress = false});
  });
  EXPECT_NE(error.find("missing"), std::string::npos) << error;
  EXPECT_EQ(state(), before);
}

// Numbers that would overflow are rejected, and so are invalid counts.
TEST(Resume, ImpossibleNumbersAreRefused) {
  const TemporaryDirectory directory;
  FullRun(directory / "run", false, {}).fit(11);
  const std::pair<const char*, const char*> kCases[] = {{"steps", "9223372036854775805"},
                                                        {"steps", "-1"},
                                                        {"phase.skipped", "9007199254740993"},
                                                        {"epoch", "-9223372036854775808"},
                                                        {"best_epoch", "-2"},
                                                        {"schedule.step", "1e3"},
                                                        {"scaler.growth_tracker", "1e300"},
                                                        {"scaler.scale", "nan"},
                                                        {"optimizer.step", "inf"},
                                                        {"random_offset", "-1"}};
  for (const auto& [name, value] : kCases) {
    const std::string result = end_with(directory / "run", [&](const std::string& path) {
      forge(path, [&](Manifest& m) { m.fields[name] = value; });
    });
    EXPECT_EQ(result.find("refused: "), 0u) << name << " = " << value << ": " << result;
    EXPECT_NE(result.find(name), std::string::npos) << result;
  }
}

TEST(Resume, AnotherVersionIsRefusedByName) {
  const TemporaryDirectory directory;
  FullRun(directory / "run", false, {}).fit(11);
  const std::string result = end_with(directory / "run", [&](const std::string& path) {
    forge(path, [&](Manifest& m) { m.fields.at("setting.Binade version") = "0.0.1"; });
  });
  EXPECT_EQ(result.find("refused: resume: got Binade version = "), 0u) << result;
  EXPECT_NE(result.find("was trained with Binade version = 0.0.1"), std::string::npos) << result;
}

// damage ------------------------------------------------------------------------------------------

TEST(Resume, WithoutAGoodCheckpointNothingIsTouched) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  EXPECT_TRUE(FullRun(run, false, {}).fit());
  for (const std::string& name : names_in(run + "/checkpoint")) {
    flip(run + "/checkpoint/" + name + "/model.safetensors");
  }
  const auto before = tree(run);
  const std::string error = error_of([&] { FullRun(run, true, {}); });
  for (const char* part : {"step-00000009: ", "step-00000008: ", "best: ", "--overwrite"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  EXPECT_EQ(tree(run), before);
}

// Flips bits anywhere in a run directory, also in metrics, a dead owner's lock and leftovers.
TEST(Resume, AfterRandomFlips) {
  const TemporaryDirectory directory;
  const std::string stopped = directory / "stopped", expected = uninterrupted({});
  FullRun(stopped, false, {}).fit(8 + 8 + 3);
  std::ofstream(stopped + "/lock") << std::string(300, 'x');
  const auto original = tree(stopped);
  std::vector<std::string> files;
  std::map<std::string, int64_t> steps;
  for (const auto& [path, bytes] : original) {
    if (!bytes.empty()) {
      files.push_back(path);
    }
    if (path.ends_with("/manifest.json")) {
      const std::string checkpoint = fs::path(path).parent_path().native();
      steps[checkpoint] = read_manifest(checkpoint, file_system()).step;
    }
  }
  ASSERT_EQ(steps.size(), 3u);
  std::mt19937 random(43);
  Warnings warnings;
  for (int round = 0; round < (is_long() ? 1000 : 10); ++round) {
    SCOPED_TRACE(round);
    const std::string run = directory / "run";
    fs::copy(stopped, run, fs::copy_options::recursive);
    std::map<std::string, int64_t> good = steps;
    for (auto flips = random() % 3 + 1; flips > 0; --flips) {
      const std::string& file = files[random() % files.size()];
      std::string bytes = original.at(file);
      const size_t bit = random() % (bytes.size() * 8);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      std::ofstream(run + file.substr(stopped.size()), std::ios::binary) << bytes;
      good.erase(fs::path(file).parent_path().native());
    }
    fs::last_write_time(run + "/lock", fs::file_time_type::clock::now() - std::chrono::hours(1));
    int64_t newest_good = -1;
    for (const auto& [name, step] : good) {
      newest_good = std::max(newest_good, step);
    }
    const std::string error = error_of([&] {
      FullRun resumed(run, true, {});
      EXPECT_EQ(resumed.trainer->steps(), newest_good);
      EXPECT_TRUE(resumed.fit());
      if (good.contains(stopped + "/checkpoint/best")) {
        const std::string record = record_of(run, resumed);
        EXPECT_EQ(record.substr(record.rfind('\n')), expected.substr(expected.rfind('\n')));
      }
    });
    EXPECT_EQ(error == "none", newest_good >= 0) << error;
    fs::remove_all(run);
  }
}

TEST(Resume, TheBestServesIfTheNewerOnesAreDamaged) {
  const std::string expected = uninterrupted({});
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  FullRun(run, false, {})
      .fit(8 + 8 + 5);  // in the third epoch, with the best weights of an earlier one
  const std::string metrics = contents(run + "/metrics.jsonl");
  for (const std::string& name : names_in(run + "/checkpoint")) {
    if (name != "best") {
      flip(run + "/checkpoint/" + name + "/optimizer.safetensors");
    }
  }
  Warnings warnings;
  FullRun resumed(run, true, {.seed = 99});
  EXPECT_TRUE(resumed.trainer->resumed());
  EXPECT_NE(warnings.all.find(".damaged"), std::string::npos) << warnings.all;
  EXPECT_EQ(contents(run + "/metrics.jsonl"), metrics) << "not before a line is written";
  const int64_t epoch = resumed.trainer->epoch();
  EXPECT_TRUE(resumed.fit());
  EXPECT_EQ(record_of(run, resumed), expected);
  const bool cut = epoch < 2;  // the best was epoch 1, so epoch 2 ran again
  EXPECT_EQ(fs::exists(run + "/metrics.jsonl.cut"), cut);
}

TEST(Resume, ADamagedBestAloneIsAWarning) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  FullRun(run, false, {}).fit(8 + 8 + 5);
  flip(run + "/checkpoint/best/model.safetensors");
  Warnings warnings;
  FullRun resumed(run, true, {});
  EXPECT_EQ(resumed.trainer->epoch(), 2);
  for (const char* part : {"best.damaged", "got no readable", "the weights of epoch 2;",
                           "chosen from those to come"}) {
    EXPECT_NE(warnings.all.find(part), std::string::npos) << warnings.all;
  }
  EXPECT_TRUE(resumed.fit());
  EXPECT_TRUE(fs::exists(run + "/checkpoint/best/model.safetensors"));
}

TEST(Resume, WithoutAnyCheckpointTheOldLinesAreKept) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  FullRun(run, false, {}).fit();
  const std::string metrics = contents(run + "/metrics.jsonl");
  fs::remove_all(run + "/checkpoint");
  FullRun fresh(run, true, {});
  EXPECT_FALSE(fresh.trainer->resumed());
  EXPECT_TRUE(fresh.fit());
  EXPECT_EQ(contents(run + "/metrics.jsonl.cut"), metrics);
  EXPECT_EQ(read_lines(run + "/metrics.jsonl").size(), 3u);
}

}  // namespace
}  // namespace binade::train::trainer_resume_test
