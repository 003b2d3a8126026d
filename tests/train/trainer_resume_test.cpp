// Resuming: a run that died anywhere ends as one that did not, every item of its state counts, and
// what cannot be resumed is refused by name. BINADE_LONG in the environment asks for the long
// forms.
#include <binade/core/io/crc32c.h>
#include <binade/core/ops.h>
#include <binade/data/transforms.h>
#include <binade/nn/activation.h>
#include <binade/nn/conv.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/optim/adamw.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/run_directory.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "tests/data/fake_dataset.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/scripted_run.h"

namespace binade::train {
namespace {

namespace fs = std::filesystem;
using binade::testing::TemporaryDirectory;
using test::ScriptedModel, test::Warnings;

bool is_long() { return std::getenv("BINADE_LONG") != nullptr; }

class Net : public nn::Module {
 public:
  Net() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("dropout", dropout);
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(flatten(dropout(relu(norm(conv(x)))), 1)); }
  nn::Conv2d conv{{.in = 3, .out = 4, .kernel = {3, 3}, .padding = {1, 1}}};
  nn::BatchNorm2d norm{{.channels = 4}};
  nn::Dropout dropout{{.p = 0.2}};
  nn::Linear fc{{.in = 64, .out = 10}};
};

struct Death {};  // thrown where a process would die

struct RunSetup {
  int64_t epochs = 3, every = 1;  // steps between checkpoints
  uint64_t seed = 5;              // of the process, before anything is resumed
  int workers = 0;
};

// All parts of a run: f16 with a loss scaler, batch norm, dropout, augmentation, accumulation,
// clipping, AdamW, warm-up and cosine.
struct FullRun {
  FullRun(const std::string& directory, bool resume, const RunSetup& setup)
      : train_data(22),
        validation_data(6),
        train(train_data, {.batch = 4,
                           .workers = setup.workers,
                           .seed = 3,
                           .transform = data::random_horizontal_flip()}),
        validation(validation_data, {.batch = 4, .workers = 0, .shuffle = false}) {
    manual_seed(setup.seed);
    model.emplace();
    model->to(Device{}, Precision::mixed(DType::f16));
    adamw.emplace(model->parameters(), optim::AdamWOptions{.lr = 0.01});
    schedule.emplace(optim::WarmupCosine(*adamw, {.warmup = 4, .total = 3 * setup.epochs}));
    trainer.emplace(
        TrainingParts{
            .model = *model, .optimizer = *adamw, .scaler = &scaler, .schedule = &*schedule},
        TrainerOptions{.epochs = setup.epochs,
                       .accumulate = 2,
                       .clip_norm = 1,
                       .run = directory,
                       .resume = resume,
                       .checkpoint_every = setup.every,
                       .progress = false,
                       .step = [this](nn::Module& net, const data::Batch& batch) {
                         if (calls++ == die_at) {
                           throw Death();
                         }
                         return classification_step(net, batch);
                       }});
  }
  // Dies at the given call of the step, in training or validation. True: it came to the end.
  bool fit(int64_t die_at_call = -1) {
    die_at = die_at_call;
    try {
      trainer->fit(train, &validation);
      return true;
    } catch (const Death&) {
      return false;
    }
  }

  data::test::FakeDataset train_data, validation_data;
  data::Loader train, validation;
  optim::LossScaler scaler{{.init_scale = 1024, .growth_interval = 4}};
  std::optional<Net> model;
  std::optional<optim::AdamW> adamw;
  std::optional<optim::Schedule> schedule;
  std::optional<Trainer> trainer;
  int64_t calls = 0, die_at = -1;
};

// What must be the same: metrics, and every number of the parts at the end.
std::string record_of(const std::string& directory, const FullRun& run) {
  std::string all;
  for (std::string line : read_lines(directory + "/metrics.jsonl")) {
    for (const char* varies : {"\"samples_per_second\":", "\"workers\":"}) {
      const size_t at = line.find(varies);
      line.erase(at, line.find(',', at) - at);
    }
    all += line;
  }
  NamedTensors tensors = run.model->state();
  for (auto& entry : run.adamw->state_tensors()) {
    tensors.push_back(entry);
  }
  all += text(state_hash(tensors), " step ", run.trainer->steps(), " scale ", run.scaler.scale(),
              " random ", generator().offset);
  return all;
}

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

// 200 steps in all; in its long form it dies more than 100 times.
TEST(Resume, DyingAgainAndAgainChangesNothing) {
  const RunSetup setup{.epochs = is_long() ? 66 : 6, .every = 2};
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

// Changes a checkpoint and makes its checksums right again.
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

// How a run with one item of its state changed ends.
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
  // The schedule sets the rate; best_epoch and finished are for other cases; the scaler's own count
  // is for its report.
  const std::set<std::string> without_effect{"optimizer.lr.0", "best_epoch", "bad_epochs",
                                             "scaler.skipped_steps"};
  int items = 0;
  for (const auto& [name, value] : manifest.fields) {
    if (name.starts_with("setting.") || name.starts_with("data.") ||
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
      // A weight that has a master takes its value.
      EXPECT_TRUE(result != expected || masters.contains("master." + tensors[i].first));
      ++items;
    }
  }
  EXPECT_GT(items, 30);
}

TEST(Resume, ALoadThatFailsChangesNothing) {
  const TemporaryDirectory directory;
  FullRun(directory / "run", false, {}).fit(11);
  const auto damage = [&](const std::string& path) {  // a moment too few
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
    Trainer({.model = model, .optimizer = adamw, .scaler = &scaler, .schedule = &schedule},
            {.epochs = 3, .run = directory / "run", .resume = true, .progress = false});
  });
  EXPECT_NE(error.find("missing"), std::string::npos) << error;
  EXPECT_EQ(state(), before);
}

// Numbers that would overflow are refused, and so are those that are no counts.
TEST(Resume, ImpossibleNumbersAreRefused) {
  const TemporaryDirectory directory;
  FullRun(directory / "run", false, {}).fit(11);
  const std::pair<const char*, const char*> kCases[] = {{"steps", "9223372036854775805"},
                                                        {"steps", "-1"},
                                                        {"skipped", "9007199254740993"},
                                                        {"epoch", "-9223372036854775808"},
                                                        {"best_epoch", "-2"},
                                                        {"schedule_step", "1e3"},
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
  const bool cut = epoch < 2;  // the best was the first epoch: the second one's line came again
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
  for (const char* part : {"best.damaged", "got no readable", "chosen from those to come"}) {
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
}  // namespace binade::train
