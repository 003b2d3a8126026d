// The Trainer on several ranks must equal one rank with all their batches.
#include <binade/dist/job/threads.h>
#include <binade/optim/sgd.h>
#include <binade/train/ranks_internal.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/trainer_ranks.h>
#include <tests/support/temporary_directory.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

namespace binade::train::trainer_ranks_test {
namespace {

struct Equality {
  const char* what;
  int ranks;
  Training run;
  double tolerance;
};

TEST(TrainerRanks, EqualOneRankWithTheirBatchesTogether) {
  const Equality cases[] = {
      {"200 steps", 2, {.epochs = 20}, 1e-12},
      {"200 steps in f32", 2, {.epochs = 20, .dtype = DType::f32}, 1e-5},
      {"three ranks, clipped", 3, {.epochs = 20, .clip = 0.05}, 1e-12},
      {"accumulation", 2, {.epochs = 20, .accumulate = 2}, 1e-12},
      {"accumulation and clipping", 2, {.accumulate = 3, .clip = 0.05}, 1e-12},
      {"a scaler, infinite on one rank", 4, {.scaler = true, .poisoned = 7}, 1e-12},
      {"all of it",
       2,
       {.epochs = 20, .accumulate = 2, .clip = 0.05, .scaler = true, .poisoned = 7},
       1e-12},
      {"sharded states",
       3,
       {.accumulate = 2, .clip = 0.05, .scaler = true, .poisoned = 7, .sharding = Sharding::states},
       1e-12},
      {"sharded gradients",
       3,
       {.accumulate = 2,
        .clip = 0.05,
        .scaler = true,
        .poisoned = 7,
        .sharding = Sharding::gradients},
       1e-12},
      {"synchronised batch norm",
       2,
       {.epochs = 20, .batch_norm = true, .synchronized = true},
       1e-12},
      {"synchronised batch norm and sharded gradients",
       3,
       {.clip = 0.05, .sharding = Sharding::gradients, .batch_norm = true, .synchronized = true},
       1e-12},
      {"a rank without validation samples", 4, {.validation = 3}, 1e-12},
  };
  for (const Equality& c : cases) {
    SCOPED_TRACE(c.what);
    const Outcome one = train_on(1, c.run), many = train_on(c.ranks, c.run);
    EXPECT_EQ(one.steps, kSteps * c.run.epochs);
    EXPECT_EQ(many.steps, one.steps);
    EXPECT_EQ(many.skipped, one.skipped);
    EXPECT_EQ(many.skipped, c.run.poisoned >= 0 ? c.run.epochs : 0);
    EXPECT_LE(difference(many, one), c.tolerance);
    EXPECT_EQ(many.validation.samples, c.run.validation);
    EXPECT_EQ(many.validation.values, one.validation.values);
    EXPECT_NEAR(many.validation.loss, one.validation.loss, c.tolerance);
  }
}

TEST(TrainerRanks, RunningStatisticsOfRanksAreAveraged) {
  const Outcome one = train_on(1, {.batch_norm = true}), many = train_on(2, {.batch_norm = true});
  EXPECT_GT(difference(many, one), 1e-6);  // batches of half the size; but all ranks agree
  EXPECT_NEAR(many.validation.loss, one.validation.loss, 0.2);
}

TEST(TrainerRanks, DrawOtherRandomNumbersWhileTheyTrain) {
  std::mutex mutex;
  std::map<int, std::set<uint64_t>> seeds;  // by rank
  const Outcome many = train_on(3, {.watch = [&](const Trainer&, const data::Batch&, int rank) {
                                  const std::lock_guard lock(mutex);
                                  seeds[rank].insert(generator().seed);
                                }});
  EXPECT_EQ(many.steps, 3 * kSteps);
  EXPECT_EQ(seeds[0], std::set<uint64_t>{11});  // as on a single rank
  EXPECT_EQ(seeds[1].size() + seeds[2].size(), 2U);
  EXPECT_TRUE(*seeds[1].begin() != 11 && *seeds[2].begin() != 11 && seeds[1] != seeds[2]);
}

TEST(TrainerRanks, AnOverflowInF16OnOneRankIsSkippedByAll) {
  const Outcome many = train_on(3, {.f16 = true, .scaler = true, .poisoned = 5});
  EXPECT_EQ(many.skipped, 3);
  EXPECT_EQ(many.steps, 3 * kSteps);
}

// Without a scaler a loss that is not finite ends the run: the rank that has it reports it, and the
// other ranks do not wait for it.
TEST(TrainerRanks, ABadLossOfOneRankEndsAll) {
  try {
    train_on(3, {.poisoned = 5});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("got a loss of inf in step"), std::string::npos)
        << error.what();
  }
}

// All ranks skip the step, or return to the checkpoint, as one rank with their batches would.
TEST(TrainerRanks, ABadLossOfOneRankIsSkippedByAll) {
  const Training run{.poisoned = 7, .on_nan = OnNan::skip};
  const Outcome one = train_on(1, run), many = train_on(3, run);
  EXPECT_EQ(many.steps, 3 * kSteps);
  EXPECT_EQ(many.skipped, 3);
  EXPECT_EQ(one.skipped, 3);
  EXPECT_LE(difference(many, one), 1e-12);
}

TEST(TrainerRanks, ABadLossOfOneRankRollsAllBack) {
  const testing::TemporaryDirectory directory;
  Training run{.accumulate = 2, .poisoned = 7, .poisonings = 1, .on_nan = OnNan::roll_back};
  run.directory = directory / "one", run.checkpoint_every = 4;
  run.batch_norm = run.synchronized = true;
  const Outcome one = train_on(1, run);
  run.directory = directory / "three";
  const Outcome many = train_on(2, run);
  for (const Outcome* outcome : {&one, &many}) {
    EXPECT_EQ(outcome->steps, 3 * kSteps);
    EXPECT_EQ(outcome->skipped, 0);
    EXPECT_EQ(outcome->rollbacks, 1);
  }
  EXPECT_LE(difference(many, one), 1e-12);
  run.directory = directory / "again", run.poisonings = kSamples;
  EXPECT_THROW(train_on(2, run), Error);
}

double number_in(const std::string& line, const std::string& name) {
  const size_t at = line.find("\"" + name + "\":");
  return at == std::string::npos ? NAN : std::strtod(line.c_str() + at + name.size() + 3, nullptr);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(TrainerRanks, MetricsAreOfAllRanksAndWrittenOnce) {
  const testing::TemporaryDirectory directory;
  train_on(1, {.directory = directory / "one"});
  train_on(4, {.directory = directory / "four", .checkpoint_every = 4});
  const auto one = lines_of(directory / "one/metrics.jsonl"),
             four = lines_of(directory / "four/metrics.jsonl");
  ASSERT_EQ(one.size(), 3U);
  ASSERT_EQ(four.size(), 3U);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    for (const char* name : {"train_loss", "validation_loss", "validation_accuracy"}) {
      EXPECT_NEAR(number_in(four[epoch], name), number_in(one[epoch], name), 1e-12) << name;
    }
  }
}

// The n-th evaluation gives the loss log(script[n]) for every label.
class ScriptedLosses : public nn::Module {
 public:
  explicit ScriptedLosses(std::vector<int64_t> script)
      : weight(zeros({4})), script_(std::move(script)) {
    register_parameter("weight", weight);
  }
  Tensor forward(const Tensor& x) override {
    return zeros({x.size(0), script_.at(evaluations_++)});
  }
  Tensor weight;

 private:
  std::vector<int64_t> script_;
  size_t evaluations_ = 0;
};

// Rank 1 alone would stop after epoch 2, rank 0 alone after epoch 3, each with its second weights.
TEST(TrainerRanks, StopEarlyByTheLossOfAllRanks) {
  const std::vector<int64_t> script[] = {{80, 20, 30, 30, 10}, {80, 90, 20, 20, 20}};
  dist::run_threads(2, [&](Communicator& group) {
    ScriptedLosses model(script[group.rank()]);
    optim::SGD sgd(model.parameters(), {.lr = 1});
    Trainer trainer({.model = model, .optimizer = sgd},
                    {.epochs = 5,
                     .patience = 1,
                     .progress = false,
                     .step =
                         [&](nn::Module& net, const data::Batch& batch) {
                           return net.is_training() ? sum(model.weight)
                                                    : classification_step(net, batch).loss;
                         },
                     .sanity_batches = 0,
                     .group = &group});
    const FakeDataset pictures(2);
    data::Loader loader(
        pictures,
        {.batch = 1, .workers = 0, .shuffle = false, .shard = group.rank(), .shard_count = 2});
    trainer.fit(loader, &loader);
    check(trainer.epoch() == 4, "epochs ", trainer.epoch());  // the fourth was not better
    check(model.weight.at(0) == -3, "the weight is ", model.weight.at(0));
  });
}

std::string error_on_two_ranks(const std::function<void(data::LoaderOptions&)>& change) {
  try {
    dist::run_threads(2, [&](Communicator& group) {
      TwoLayers model;
      optim::SGD sgd(model.parameters(), {.lr = 1});
      Trainer trainer({.model = model, .optimizer = sgd}, {.progress = false, .group = &group});
      const FakeDataset pictures(8);
      data::LoaderOptions options{
          .batch = 2, .workers = 0, .shard = group.rank(), .shard_count = 2};
      change(options);
      data::Loader loader(pictures, options);
      trainer.fit(loader);
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(TrainerRanksErrors, LoadersOfOtherShards) {
  EXPECT_EQ(error_on_two_ranks([](data::LoaderOptions& o) { o.shard = 1; }),
            "trainer: got a training loader of shard 1 of 2 on rank 0 of 2, expected the rank's "
            "own; set shard and shard_count of its options");
  EXPECT_NE(error_on_two_ranks([](data::LoaderOptions& o) {
              o.uneven_shards = data::UnevenShards::keep;
            }).find("UnevenShards::keep"),
            std::string::npos);
  EXPECT_NE(error_on_two_ranks([](data::LoaderOptions& o) {
              o.bad_file = data::BadFilePolicy::skip;
            }).find("BadFilePolicy::skip"),
            std::string::npos);
}

// Holds for any exception, not only Error: other ranks must not wait for one that has left.
TEST(TrainerRanks, AnyExceptionOfRankZeroReachesAll) {
  for (const bool system : {false, true}) {
    dist::run_threads(2, [&](dist::Communicator& group) {
      const Ranks ranks(&group);
      std::string error;
      try {
        ranks.on_root([&] {
          if (system) {
            throw std::filesystem::filesystem_error("no place",
                                                    std::make_error_code(std::errc::io_error));
          }
          throw std::runtime_error("");
        });
      } catch (const std::exception& caught) {
        error = caught.what();
      }
      const bool named = error.find(system ? "no place" : "without a reason") != std::string::npos;
      EXPECT_TRUE(named || (!system && ranks.is_root())) << ranks.rank() << error;
      group.barrier();
    });
  }
}

}  // namespace
}  // namespace binade::train::trainer_ranks_test
