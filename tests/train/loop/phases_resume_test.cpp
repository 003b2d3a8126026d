// A run with all kinds of state: two phases with their own loss scalers and schedules,
// accumulation, an Ema, a plateau, validation every few steps, a step limit and a line per step. If
// it dies at any call of a step, it still ends like one that did not.
#include <binade/train/model_file.h>
#include <binade/train/run_directory.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop/toy_tasks.h"

namespace binade::train::phases_resume_test {
namespace {

using binade::testing::TemporaryDirectory;
using namespace toy;

struct Death {};

struct EverythingRun {
  EverythingRun(const std::string& directory, bool resume, uint64_t seed = 5,
                int64_t max_steps = 11) {
    manual_seed(seed);
    gan.emplace();
    gan->to(Device{}, Precision::mixed(DType::f16));
    d.emplace(gan->discriminator(), optim::AdamWOptions{.lr = 0.02});
    g.emplace(gan->generator.parameters(), optim::AdamWOptions{.lr = 0.01});
    schedule.emplace(optim::WarmupCosine(*g, {.warmup = 2, .total = 8}));
    plateau.emplace(*d, optim::ReduceLROnPlateauOptions{.factor = 0.5, .patience = 0});
    ema.emplace(*gan, EmaOptions{.decay = 0.8});
    trainer.emplace(TrainingParts{.model = *gan,
                                  .plateau = &*plateau,
                                  .ema = &*ema,
                                  .phases = {{.name = "discriminator",
                                              .optimizer = *d,
                                              .step = counted(discriminator_loss),
                                              .scaler = &d_scaler},
                                             {.name = "generator",
                                              .optimizer = *g,
                                              .step = counted(generator_loss),
                                              .scaler = &g_scaler,
                                              .schedule = &*schedule,
                                              .every = 2}}},
                    TrainerOptions{.max_steps = max_steps,
                                   .accumulate = 2,
                                   .clip_norm = 1,
                                   .patience = 0,
                                   .run = directory,
                                   .resume = resume,
                                   .checkpoint_every = 1,
                                   .progress = false,
                                   .validation_step = gan_validation,
                                   .validate_every = {.steps = 3},
                                   .sanity_batches = 1,
                                   .log_every = 1,
                                   .log_norms = true});
  }
  TrainingStep counted(Tensor (*loss)(Gan&, const data::Batch&)) {
    return [this, loss](Gan& net, const data::Batch& batch) -> StepOutput {
      if (calls++ == die_at) {
        throw Death();
      }
      const Tensor l = loss(net, batch);
      if (loss != discriminator_loss) {
        return {.loss = l};
      }
      return {.loss = l, .log = {{"half", l.detach() * 0.5}, {"rows", batch.size}}};
    };
  }
  bool fit(int64_t die_at_call = -1) {
    die_at = die_at_call;
    try {
      trainer->fit(train, &validation);
      return true;
    } catch (const Death&) {
      return false;
    }
  }

  data::TensorDataset train_rows = rows(33, 1), validation_rows = rows(10, 2);
  data::Loader train{train_rows, {.batch = 4, .workers = 0, .seed = 4}};
  data::Loader validation{validation_rows, {.batch = 6, .workers = 0, .shuffle = false}};
  optim::LossScaler d_scaler{{.init_scale = 1024, .growth_interval = 4}},
      g_scaler{{.init_scale = 512, .growth_interval = 2}};
  std::optional<Gan> gan;
  std::optional<optim::AdamW> d, g;
  std::optional<optim::Schedule> schedule;
  std::optional<optim::ReduceLROnPlateau> plateau;
  std::optional<Ema> ema;
  std::optional<Trainer> trainer;
  int64_t calls = 0, die_at = -1;
};

std::string record_of(const std::string& directory, const EverythingRun& run) {
  std::string all;
  for (std::string line : read_lines(directory + "/metrics.jsonl")) {
    const size_t at = line.find("\"samples_per_second\":");
    if (at != std::string::npos) {
      line.erase(at, line.find(',', at) - at);
    }
    all += line;
  }
  NamedTensors tensors = run.gan->state();
  for (const auto* optimizer : {&*run.d, &*run.g}) {
    for (auto& entry : optimizer->state_tensors()) {
      tensors.push_back(entry);
    }
  }
  return all + text(state_hash(tensors), state_hash(run.ema->state()), " step ",
                    run.trainer->steps(), " scales ", run.d_scaler.scale(), " ",
                    run.g_scaler.scale(), " rates ", run.d->lr(), " ", run.g->lr(), " random ",
                    generator().offset, " ", run.plateau->best(), run.trainer->stop_reason());
}

TEST(PhasesResume, DyingAtAnyBatchChangesNothing) {
  const TemporaryDirectory whole;
  EverythingRun reference(whole / "run", false);
  EXPECT_TRUE(reference.fit());
  const std::string expected = record_of(whole / "run", reference);
  EXPECT_EQ(reference.trainer->steps(), 11);
  EXPECT_EQ(reference.calls, 20 + 9);  // two batches a step, one at the end of an epoch
  EXPECT_EQ(reference.d->step_count() + reference.d_scaler.skipped_steps(), 11);
  EXPECT_EQ(reference.g->step_count() + reference.g_scaler.skipped_steps(), 5);
  for (const char* key :
       {"\"train_discriminator_loss\":", "\"train_generator_loss\":", "\"train_half\":",
        "\"train_rows\":4", "\"validation_loss\":", "\"gradient_norm_generator\":",
        "\"weight_norm\":", "\"learning_rate_discriminator\":", "\"loss_scale_generator\":"}) {
    EXPECT_NE(expected.find(key), std::string::npos) << key << " in " << expected;
  }
  int64_t deaths = 0;
  for (int64_t at = 0; at < reference.calls; at += at % 3 == 0 ? 1 : 2) {
    SCOPED_TRACE(text("died at call ", at));
    const TemporaryDirectory directory;
    EXPECT_FALSE(EverythingRun(directory / "run", false).fit(at));
    EverythingRun run(directory / "run", true, at > 1 ? 99 : 5);
    if (!run.trainer->resumed()) {  // it starts anew, with the first run's seed
      continue;
    }
    EXPECT_TRUE(run.fit());
    ASSERT_EQ(record_of(directory / "run", run), expected);
    ++deaths;
  }
  EXPECT_GT(deaths, 8);
}

TEST(PhasesResume, ALargerLimitGoesOn) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(EverythingRun(directory / "run", false, 5, 6).fit());
  EverythingRun run(directory / "run", true, 99, 9);
  EXPECT_TRUE(run.trainer->resumed());
  EXPECT_EQ(run.trainer->steps(), 6);
  EXPECT_TRUE(run.fit());
  EXPECT_EQ(run.trainer->steps(), 9);
  EXPECT_EQ(run.trainer->stop_reason(), "max_steps 9");
}

TEST(PhasesResume, OtherPartsAreRefusedByName) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(EverythingRun(directory / "run", false, 5, 3).fit());
  manual_seed(1);
  Gan gan;
  gan.to(Device{}, Precision::mixed(DType::f16));
  optim::AdamW adam(gan.parameters(), {.lr = 0.02});
  const std::string error = error_of([&] {
    Trainer({.model = gan, .optimizer = adam},
            {.clip_norm = 1, .run = directory / "run", .resume = true, .progress = false});
  });
  for (const char* part :
       {"resume: got ema = none", "phases = none", "phases = discriminator, generator"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace binade::train::phases_resume_test
