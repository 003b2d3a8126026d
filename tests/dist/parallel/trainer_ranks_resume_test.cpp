// Runs of several ranks that end early, by a signal or a fault, and continue with any number of
// ranks.
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/format_histories.h>
#include <binade/train/model_file.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/trainer_ranks.h>
#include <tests/support/temporary_directory.h>

#include <csignal>
#include <map>
#include <mutex>
#include <numeric>

namespace binade::train::trainer_ranks_resume_test {
namespace {

// By step: the samples that all ranks took.
using SeenSamples = std::map<int64_t, std::vector<int64_t>>;

void expect_every_sample_once_per_epoch(SeenSamples& seen, int64_t epochs) {
  ASSERT_EQ(seen.size(), static_cast<size_t>(epochs * kSteps));
  std::vector<int64_t> all(kSamples);
  std::iota(all.begin(), all.end(), 0);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<int64_t> samples;
    for (int64_t step = epoch * kSteps; step < (epoch + 1) * kSteps; ++step) {
      samples.insert(samples.end(), seen[step].begin(), seen[step].end());
    }
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(samples, all) << "epoch " << epoch;
  }
}

struct Link {
  int ranks;
  int64_t breaks_off_at;  // a step
  Sharding sharding = Sharding::none;
};

void resume_on_any_number_of_ranks(bool rows, int workers) {
  const testing::TemporaryDirectory directory;
  Training run{.epochs = 5,
               .directory = directory.path() + "/run",
               .checkpoint_every = 3,
               .rows = rows,
               .workers = workers};
  SeenSamples seen;
  Outcome last;
  for (const Link& link : {Link{4, 8},
                           {2, 17, Sharding::states},
                           {1, 25},
                           {4, 31, Sharding::gradients},
                           {1, 38},
                           {2, 1000}}) {
    SCOPED_TRACE(link.ranks);
    std::mutex mutex;
    SeenSamples now;
    run.sharding = link.sharding;
    run.watch = [&](const Trainer& trainer, const data::Batch& batch, int) {
      check(trainer.steps() < link.breaks_off_at, "broken off");
      const std::lock_guard lock(mutex);
      auto& samples = now[trainer.steps()];
      samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
    };
    try {
      last = train_on(link.ranks, run);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("broken off"), std::string::npos) << error.what();
    }
    for (auto& [step, samples] : now) {  // steps after the last checkpoint come a second time
      std::sort(samples.begin(), samples.end());
      EXPECT_TRUE(!seen.contains(step) || seen[step] == samples) << "step " << step;
      seen[step] = samples;
    }
    run.resume = true;
  }
  expect_every_sample_once_per_epoch(seen, run.epochs);
  EXPECT_EQ(last.steps, run.epochs * kSteps);
  EXPECT_LE(difference(last, train_on(1, {.epochs = run.epochs, .rows = rows})), 1e-12);
}

TEST(TrainerRanks, ResumeOnAnyNumberOfRanksSeesEverySampleOncePerEpoch) {
  resume_on_any_number_of_ranks(false, 0);
}

TEST(TrainerRanks, ResumeWithRowsOneAfterAnotherSeesEachOncePerEpoch) {
  for (const int workers : {0, 1, 3}) {
    resume_on_any_number_of_ranks(true, workers);
  }
}

// Every rank has histories of its own batches, and gets them back.
TEST(TrainerRanks, DelayedScalesOfEachRankAreResumed) {
  const testing::TemporaryDirectory directory;
  const FormatScheme scheme = format_scheme("e4m3fn/delayed=4");
  Training run{
      .precision = with_formats(Precision::full(),
                                {.weights = scheme, .activations = scheme, .gradients = scheme}),
      .directory = directory / "whole",
      .checkpoint_every = 3};
  const Outcome whole = train_on(2, run);
  run.directory = directory / "stopped";
  run.watch = [](const Trainer& trainer, const data::Batch&, int) {
    check(trainer.steps() < 8, "broken off");
  };
  EXPECT_THROW(train_on(2, run), Error);
  run.watch = {};
  run.resume = true;
  EXPECT_EQ(train_on(2, run).weights, whole.weights);
  run.epochs = 4;
  EXPECT_EQ(train_on(1, run).steps, 4 * kSteps);
}

// On more ranks than the checkpoint has, a rank that it does not know begins with the histories of
// rank 0; on fewer, those of the ranks that are gone are not used.
TEST(TrainerRanks, DelayedScalesOnAnotherNumberOfRanks) {
  const testing::TemporaryDirectory directory;
  const FormatScheme scheme = format_scheme("e4m3fn/delayed=4");
  const Training run{
      .precision = with_formats(Precision::full(),
                                {.weights = scheme, .activations = scheme, .gradients = scheme}),
      .checkpoint_every = 3};
  constexpr int64_t kLast = 6;  // the checkpoint before the run breaks off
  for (const int ranks : {1, 3, 4}) {
    SCOPED_TRACE(ranks);
    std::mutex mutex;
    std::map<int, std::string> saved, resumed;  // by rank
    Training first = run, second = run;
    first.directory = second.directory = directory / std::to_string(ranks);
    first.look = [&](const Trainer& trainer, const nn::Module& model, int rank) {
      const std::lock_guard lock(mutex);
      if (trainer.steps() == kLast) {
        saved[rank] = state_hash(nn::format_histories(model));
      }
      check(trainer.steps() < kLast + 2, "broken off");
    };
    EXPECT_THROW(train_on(2, first), Error);
    ASSERT_EQ(saved.size(), 2U);
    EXPECT_NE(saved[0], saved[1]) << "each rank has its own";
    second.resume = true;
    second.look = [&](const Trainer& trainer, const nn::Module& model, int rank) {
      const std::lock_guard lock(mutex);
      if (trainer.steps() == kLast) {
        resumed[rank] = state_hash(nn::format_histories(model));
      }
    };
    EXPECT_EQ(train_on(ranks, second).steps, second.epochs * kSteps);
    ASSERT_EQ(resumed.size(), static_cast<size_t>(ranks));
    for (const auto& [rank, scales] : resumed) {
      EXPECT_EQ(scales, saved[rank < 2 ? rank : 0]) << rank;
    }
  }
}

TEST(TrainerRanks, ASignalEndsAllAtOneStepWithACheckpoint) {
  const testing::TemporaryDirectory directory;
  const Outcome whole = train_on(2, {.dtype = DType::f32});
  for (const int64_t when : {6, 9}) {  // within an epoch, and in its last step
    Training run{.dtype = DType::f32, .directory = directory / std::to_string(when)};
    run.stop_on_signal = true;
    run.watch = [when](const Trainer& trainer, const data::Batch&, int rank) {
      if (rank == 1 && trainer.steps() == when) {
        std::raise(SIGTERM);
      }
    };
    const Outcome stopped = train_on(2, run);
    EXPECT_EQ(stopped.stopped_by, SIGTERM);
    EXPECT_EQ(stopped.steps, when + 1);
    run.watch = nullptr;
    run.resume = true;
    const Outcome resumed = train_on(2, run);
    EXPECT_EQ(resumed.stopped_by, 0);
    EXPECT_EQ(resumed.weights, whole.weights);  // bit for bit
    EXPECT_EQ(resumed.validation.loss, whole.validation.loss);
  }
}

TEST(TrainerRanksErrors, RowsOfUnknownNumber) {
  try {
    train_on(2, {.rows = true, .knows_length = false});
    ADD_FAILURE() << "trained";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "trainer: got a training loader of a dataset of unknown length, expected one whose "
        "size() is known");
  }
}

TEST(TrainerRanksErrors, AnotherGlobalBatchInTheMiddleOfAnEpoch) {
  const testing::TemporaryDirectory directory;
  Training run{.directory = directory / "run", .checkpoint_every = 3};
  run.watch = [](const Trainer& trainer, const data::Batch&, int) {
    check(trainer.steps() < 5, "broken off");
  };
  EXPECT_THROW(train_on(2, run), Error);
  run.watch = nullptr;
  run.resume = true;
  run.accumulate = 2;  // two micro-batches of half the size
  try {
    train_on(2, run);
    ADD_FAILURE() << "resumed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "resume: got 2 ranks with batches of 3, but epoch 1 was begun with 12 samples per "
                 "batch of all ranks; choose the batch so that the product is the same");
  }
}

}  // namespace
}  // namespace binade::train::trainer_ranks_resume_test
