// Compares replays of loss scale policies with runs that had the policy, and tests the rules on
// hand-made records.
#include <binade/binade.h>
#include <binade/core/observe/warning.h>
#include <binade/train/precision/scale_replay.h>
#include <gtest/gtest.h>
#include <tests/support/temporary_directory.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace binade::train::scale_replay_test {
namespace {

// BINADE_REPLAY_RUNS=20 gives 20 runs, each with 3 seeds.
int run_count() {
  const char* count = std::getenv("BINADE_REPLAY_RUNS");
  return count ? std::atoi(count) : 2;
}
int seed_count() { return run_count() >= 20 ? 3 : 1; }

// Models that differ in depth, width, learning rate and activation.
struct Model {
  int number;
  std::unique_ptr<nn::Module> make() const {
    auto net = std::make_unique<nn::Sequential>();
    const int64_t width = 16 + 8 * (number % 4);
    for (int layer = 0; layer <= number % 3; ++layer) {
      net->add<nn::Linear>({.in = layer == 0 ? 12 : width, .out = width});
      if (number % 2) {
        net->add<nn::ReLU>();
      } else {
        net->add<nn::GELU>();
      }
    }
    net->add<nn::Linear>({.in = width, .out = 10});
    return net;
  }
  double lr() const { return number % 5 < 3 ? 1e-3 : 5e-3; }
};

// Trains 320 steps under a policy and returns the log.
ScalerLog train_under(const Model& model, uint64_t seed, const std::string& policy) {
  const testing::TemporaryDirectory directory;
  manual_seed(seed);
  data::TensorDataset rows({{"images", randn({640, 12})}, {"labels", randint(0, 10, {640})}});
  data::Loader loader(rows, {.batch = 8, .workers = 0, .seed = seed});
  const auto net = model.make();
  net->to(Device{}, Precision::mixed(DType::f16));
  optim::AdamW adam(net->parameters(), {.lr = model.lr()});
  optim::LossScalerOptions options = parse_scale_policy(policy).options;
  options.at_floor = optim::AtFloor::skip;
  optim::LossScaler scaler(options);
  const auto before = set_warning_handler([](const std::string&) {});
  Trainer trainer(
      {.model = *net, .optimizer = adam, .scaler = &scaler},
      {.epochs = 4, .run = directory / "run", .progress = false, .record_gradients = true});
  trainer.fit(loader);
  set_warning_handler(before);
  return read_scaler_log(directory / "run/scaler.jsonl");
}

const char* const kRecorded = "dynamic:interval=20";
const char* const kPolicies[] = {"dynamic:interval=20", "dynamic:interval=10",
                                 "dynamic:interval=40,hysteresis=2",
                                 "dynamic:interval=16,growth=4,backoff=0.25", "static:65536"};

int64_t skipped(const ScalerLog& log) {
  return std::count_if(log.records.begin(), log.records.end(),
                       [](const ScalerRecord& r) { return r.overflow; });
}

// Expects every exact step to match the real run. Returns the error in the number of skips.
int64_t compare(const ScaleReplay& r, const ScalerLog& real, double& relative) {
  for (int64_t i = 0; i < r.exact; ++i) {
    const ScalerRecord& step = real.records[static_cast<size_t>(i)];
    EXPECT_EQ(r.scales[static_cast<size_t>(i)], step.scale) << r.policy.name << " step " << i;
    EXPECT_EQ(r.overflows[static_cast<size_t>(i)], step.overflow) << r.policy.name << " " << i;
  }
  const int64_t error = std::abs(r.skipped - skipped(real));
  relative = static_cast<double>(error) / static_cast<double>(std::max<int64_t>(skipped(real), 1));
  return error;
}

TEST(ScaleReplay, IsWhatRealRunsDid) {
  std::vector<double> errors;
  int64_t inside = 0;
  for (int number = 0; number < run_count(); ++number) {
    for (int s = 1; s <= seed_count(); ++s) {
      const auto seed = static_cast<uint64_t>(10 * number + s);
      const ScalerLog recorded = train_under({number}, seed, kRecorded);
      EXPECT_GT(skipped(recorded), 3);
      for (const char* policy : kPolicies) {
        SCOPED_TRACE(text("run ", number, ", seed ", seed, ", ", policy));
        const ScaleReplay r = replay(recorded, parse_scale_policy(policy));
        const ScalerLog real = train_under({number}, seed, policy);
        ASSERT_EQ(real.records.size(), recorded.records.size());
        EXPECT_GT(r.exact, 0);
        EXPECT_FALSE(r.is_bound);
        if (std::string(policy) == kRecorded) {
          EXPECT_EQ(r.exact, static_cast<int64_t>(recorded.records.size())) << r.boundary;
        }
        double relative = 0;
        const int64_t error = compare(r, real, relative);
        EXPECT_TRUE(error <= 2 || relative <= 0.25) << r.skipped << " instead of " << skipped(real);
        errors.push_back(relative);
        inside += r.skipped_low <= skipped(real) && skipped(real) <= r.skipped_high;
      }
    }
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], 0.1);
  EXPECT_GE(static_cast<double>(inside), 0.9 * static_cast<double>(errors.size()));
  std::printf("%zu replays: median error %.3f, worst %.3f; %lld within the interval\n",
              errors.size(), errors[errors.size() / 2], errors.back(),
              static_cast<long long>(inside));
}

// records by hand ---------------------------------------------------------------------------------

ScalerRecord step_of(int64_t step, double scale, bool overflow, double largest) {
  ScalerRecord record{.step = step, .scale = scale, .overflow = overflow};
  record.gradients =
      GradientSizes{.largest = largest, .smallest = largest, .elements = 1, .exponents = {1}};
  return record;
}

TEST(ScaleReplay, AStaticScaleSkipsWhatExceedsF16) {
  ScalerLog log;
  const double largest[] = {0.5, 1, 65519.0 / 2048, 65520.0 / 2048, 0.25};
  for (const double g : largest) {
    log.records.push_back(step_of(static_cast<int64_t>(log.records.size()), 1, false, g));
  }
  const ScaleReplay r = replay(log, parse_scale_policy("static:2048"));
  EXPECT_EQ(r.overflows, std::vector<bool>({false, false, false, true, false}));
  EXPECT_EQ(r.skipped, 1);
  EXPECT_EQ(r.exact, 4) << "the skip itself is exact, what follows is not: " << r.boundary;
}

TEST(ScaleReplay, HysteresisWaitsForTheSecondOverflow) {
  ScalerLog log;
  for (int64_t i = 0; i < 6; ++i) {
    log.records.push_back(step_of(i, 1, false, i == 1 || i == 3 ? 64 : 1));
  }
  const ScaleReplay r = replay(log, parse_scale_policy("dynamic:init=1024,hysteresis=2"));
  EXPECT_EQ(r.scales, std::vector<double>({1024, 1024, 1024, 1024, 512, 512}));
}

TEST(ScaleReplay, ZerosAndSubnormalsEndTheExactPart) {
  ScalerLog log;
  log.records = {step_of(0, 8, false, 1), step_of(1, 8, false, 1)};
  EXPECT_EQ(replay(log, parse_scale_policy("static:4")).exact, 2) << "no bit depends on the scale";
  log.records[1].gradients->zeros = 3;
  EXPECT_EQ(replay(log, parse_scale_policy("static:4")).exact, 2)
      << "what was flushed at 8 is flushed at 4, too";
  EXPECT_EQ(replay(log, parse_scale_policy("static:16")).exact, 1);
  log.records[1].gradients->chosen_zeros = 2;
  EXPECT_EQ(replay(log, parse_scale_policy("static:16")).exact, 1) << "one may have been flushed";
  log.records[1].gradients->chosen_zeros = 3;
  EXPECT_EQ(replay(log, parse_scale_policy("static:16")).exact, 2);
  log.records[1].gradients->zeros = log.records[1].gradients->chosen_zeros = 0;
  log.records[1].gradients->smallest = 0x1p-17;
  EXPECT_EQ(replay(log, parse_scale_policy("static:4")).exact, 1);
  EXPECT_EQ(replay(log, parse_scale_policy("static:16")).exact, 2);
  log.records[1] = step_of(1, 8, false, 65504.0 / 16);
  EXPECT_EQ(replay(log, parse_scale_policy("static:16")).exact, 1) << "it may have been 65519";
}

// Zeros from relu are told from zeros from rounding: with gradients of ordinary size, the exact
// part of a relu net does not end, even at a larger scale.
TEST(ScaleReplay, ZerosOfReluDoNotEndTheExactPart) {
  const testing::TemporaryDirectory directory;
  const auto run = [&](const std::string& name, double factor) {
    manual_seed(7);
    data::TensorDataset rows({{"images", randn({64, 12})}, {"labels", randint(0, 10, {64})}});
    data::Loader loader(rows, {.batch = 64, .workers = 0, .shuffle = false});
    nn::Sequential net;
    net.add<nn::Linear>({.in = 12, .out = 24});
    net.add<nn::ReLU>();
    net.add<nn::Linear>({.in = 24, .out = 10});
    net.to(Device{}, Precision::mixed(DType::f16));
    optim::SGD sgd(net.parameters(), {.lr = 1e-3});
    optim::LossScaler scaler = optim::LossScaler::fixed(256);
    Trainer trainer(
        {.model = net, .optimizer = sgd, .scaler = &scaler},
        {.epochs = 3,
         .run = directory / name,
         .progress = false,
         .step = [factor](nn::Module& model,
                          const data::Batch& batch) { return sum(model(batch.images)) * factor; },
         .record_gradients = true});
    trainer.fit(loader);
    return read_scaler_log(directory / name + "/scaler.jsonl");
  };
  const ScalerLog ordinary = run("ordinary", 1);
  ASSERT_EQ(ordinary.records.size(), 3u);
  for (const ScalerRecord& record : ordinary.records) {
    ASSERT_TRUE(record.gradients);
    EXPECT_GT(record.gradients->zeros, 100);
    EXPECT_EQ(record.gradients->chosen_zeros, record.gradients->zeros);
  }
  EXPECT_EQ(replay(ordinary, parse_scale_policy("static:512")).exact, 3)
      << replay(ordinary, parse_scale_policy("static:512")).boundary;
  // These gradients underflow in f16, so their zeros are not relu's.
  const ScalerLog small = run("small", 0x1p-32);
  EXPECT_GT(small.records[0].gradients->zeros, small.records[0].gradients->chosen_zeros);
  EXPECT_EQ(replay(small, parse_scale_policy("static:512")).exact, 0);
}

TEST(ScaleReplay, WithoutSizesItGivesBounds) {
  ScalerLog log;
  for (int64_t i = 0; i < 8; ++i) {
    log.records.push_back({.step = i, .scale = 1024, .overflow = i == 2});
  }
  const ScaleReplay r = replay(log, parse_scale_policy("static:4096"));
  EXPECT_TRUE(r.is_bound);
  EXPECT_EQ(r.skipped_low, 1);
  EXPECT_EQ(r.skipped_high, 8);
  EXPECT_FALSE(r.flushed_is_known);
  EXPECT_EQ(replay(log, parse_scale_policy("static:1024")).exact, 8);
}

TEST(ScaleReplay, BadDataOverflowsAtEveryScale) {
  ScalerLog log;
  log.records.push_back({.step = 0, .scale = 1024, .overflow = true, .cause = "bad data"});
  EXPECT_EQ(replay(log, parse_scale_policy("static:1")).skipped, 1);
}

// Gradients in f32 show what f16 would flush; for f16 gradients the share is a lower bound.
TEST(ScaleReplay, SharesAreBoundsAfterRounding) {
  ScalerLog log;
  log.records.push_back(step_of(0, 1, false, 1));
  log.records[0].gradients->least_exponent = -30;
  log.records[0].gradients->exponents = {1, 0, 0, 0, 0, 0, 3};
  const ScaleReplay rounded = replay(log, parse_scale_policy("static:1"));
  EXPECT_DOUBLE_EQ(rounded.flushed, 0.25);
  EXPECT_TRUE(rounded.flushed_is_bound);
  log.records[0].gradients->stored = DType::f32;
  const ScaleReplay whole = replay(log, parse_scale_policy("static:32"));
  EXPECT_DOUBLE_EQ(whole.flushed, 0);
  EXPECT_FALSE(whole.flushed_is_bound);
  EXPECT_EQ(whole.exact, 0) << "an f32 run has other bits from the first step on";
}

TEST(ScaleReplay, WrongPoliciesAreOneError) {
  for (const char* policy :
       {"", "fixed:3", "static", "static:", "static:x", "static:-1", "dynamic:interval=0",
        "dynamic:interval=1.5", "dynamic:foo=1", "dynamic:growth", "dynamic:growth=0.5",
        "dynamic:hysteresis=0", "dynamic:init=nan", "dynamic:,"}) {
    EXPECT_THROW((void)parse_scale_policy(policy), Error) << policy;
  }
}

TEST(ScalerLog, ReadsWhatItWrote) {
  const testing::TemporaryDirectory directory;
  const std::string file = directory / "scaler.jsonl";
  const ScalerRecord applied = step_of(0, 1024, false, 0.3);
  const ScalerRecord overflow{
      .step = 1, .scale = 2048, .overflow = true, .bad = "fc \"1\"\n", .cause = "bad data"};
  {
    ScalerLogFile log(file, {.growth_interval = 7, .hysteresis = 3}, false);
    log.add(applied);
  }
  {
    ScalerLogFile log(file, {.growth_interval = 8}, true);
    log.add(overflow);
  }
  const ScalerLog read = read_scaler_log(file);
  EXPECT_EQ(read.options.growth_interval, 8);
  ASSERT_EQ(read.records.size(), 2u);
  EXPECT_EQ(to_json(read.records[0]), to_json(applied));
  EXPECT_EQ(to_json(read.records[1]), to_json(overflow));
  std::ofstream(file, std::ios::app) << "{\"step\":2,\"sca";
  EXPECT_EQ(read_scaler_log(file).records.size(), 2u) << "a killed run leaves half a line";
  keep_scaler_lines(file, 1);
  EXPECT_EQ(read_scaler_log(file).records.size(), 1u);
}

TEST(ScalerLog, DamageIsOneErrorWithItsLine) {
  const testing::TemporaryDirectory directory;
  const std::string file = directory / "scaler.jsonl";
  const std::string good = to_json(step_of(4, 8, false, 1)) + "\n";
  for (const std::string& bad :
       {std::string("nonsense\n"), std::string("{}\n"), std::string("{\"step\":1}\n"), good + good,
        std::string("{\"step\":5,\"scale\":-1,\"outcome\":\"applied\"}\n"),
        std::string("{\"step\":5,\"scale\":1,\"outcome\":\"other\"}\n")}) {
    { const ScalerLogFile log(file, {}, false); }
    std::ofstream(file, std::ios::app) << bad;
    try {
      (void)read_scaler_log(file);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("line "), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace binade::train::scale_replay_test
