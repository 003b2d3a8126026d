// Tests ZeRO: training with states, or states and gradients, sharded over ranks (threads here).
#include <binade/core/device/memory.h>
#include <binade/core/ops.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/losses.h>
#include <binade/optim/adagrad.h>
#include <binade/optim/adamw.h>
#include <binade/optim/clip.h>
#include <binade/optim/lamb.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/nadam.h>
#include <binade/optim/rmsprop.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/training_cases.h>
#include <tests/kernels/support/test_device.h>
#include <tests/support/error_of.h>

#include <atomic>
#include <cmath>

namespace binade::dist::zero_test {
namespace {

constexpr int64_t kBatch = 12;

using Make = std::unique_ptr<optim::Optimizer> (*)(const ParameterList&);

std::unique_ptr<optim::Optimizer> adamw(const ParameterList& p) {
  return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.01});
}

struct Training {
  int64_t first = 0, last = 15;  // range of steps
  int64_t micro_batches = 1;
  DType dtype = DType::f64;  // f16 means mixed precision
  Make make = adamw;
  double clip = 0;
  bool scaler = false;
  int64_t infinite_at = -1;  // step with an infinite gradient on the last rank
  optim::AtFloor at_floor = optim::AtFloor::skip;
  bool freeze = false;
  Device device = {};
};

struct State {
  NamedTensors model, optimizer;
  optim::NamedScalars scalars;
};

NamedTensors copies(const NamedTensors& tensors) {
  const NoGradGuard guard;
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    Tensor copy = empty_like(tensor);
    copy.copy_(tensor.detach());
    out.emplace_back(name, copy);
  }
  return out;
}

// Trains as one rank, starting at `from` if it is given.
State train(const Training& run, Communicator& group, Sharding sharding,
            const State* from = nullptr) {
  SmallModel model;
  model.to(run.device, run.dtype == DType::f16 ? Precision::mixed(DType::f16) : Precision::full());
  if (run.dtype == DType::f64) {
    model.to(run.dtype);
  }
  if (run.freeze) {
    model.freeze("fc2");
  }
  if (sharding != Sharding::none) {
    model.parameters().shard(group, sharding);
  }
  const auto optimizer = run.make(model.parameters());
  if (from) {
    model.load_state(from->model);
    optimizer->load_state(from->optimizer, from->scalars);
  }
  DistributedDataParallel ddp(group, model.parameters(), {.bucket_bytes = 600, .check_every = 1});
  optim::LossScaler scaler({.init_scale = 8, .min_scale = 8, .at_floor = run.at_floor});
  const int64_t own = kBatch / group.size(), micro = own / run.micro_batches;
  const DType input = run.dtype == DType::f16 ? DType::f32 : run.dtype;
  for (int64_t step = run.first; step < run.last; ++step) {
    for (int64_t m = 0; m < run.micro_batches; ++m) {
      ddp.set_reduce(m == run.micro_batches - 1);
      const Rows rows = rows_of(step, group.rank() * own + m * micro, micro, input);
      const Tensor x = rows.x.to(run.device), labels = rows.labels.to(run.device);
      Tensor loss = mul(nn::cross_entropy(model(x), labels), 1.0 / run.micro_batches);
      if (step == run.infinite_at && group.rank() == group.size() - 1) {
        loss = mul(loss, INFINITY);
      }
      run.scaler ? scaler.scale(loss).backward() : loss.backward();
    }
    ddp.finish();
    const optim::StepOptions options{.clip_norm =
                                         run.clip > 0 ? std::optional(run.clip) : std::nullopt};
    const optim::StepOutcome outcome =
        run.scaler ? scaler.step(*optimizer, options).value() : optimizer->step(options).value();
    const bool skips = step == run.infinite_at && run.at_floor == optim::AtFloor::skip;
    check((outcome == optim::StepOutcome::overflow) == skips, "step ", step, " on rank ",
          group.rank(), " was ", to_string(outcome));
    if (skips) {
      check(scaler.last_overflow() == "fc1.weight", "overflow in ", scaler.last_overflow());
    }
  }
  ddp.compare_parameters();
  return {copies(model.state()), copies(optimizer->state_tensors()), optimizer->state_scalars()};
}

// Compares values, masters and moments with and without sharding.
void expect_as_unsharded(const Training& run, Sharding sharding, int ranks, double tolerance) {
  run_threads(ranks, [&](Communicator& group) {
    const State whole = train(run, group, Sharding::none), parts = train(run, group, sharding);
    check(values_of(whole.optimizer).size() >= values_of(whole.model).size(), "too few states");
    check_close(values_of(parts.model), values_of(whole.model), tolerance);
    check_close(values_of(parts.optimizer), values_of(whole.optimizer), tolerance);
    check(parts.scalars == whole.scalars, "the counters differ");
  });
}

constexpr double kSameBits = 0;

TEST(Zero, ShardedStatesEqualWholeOnesBitForBit) {
  const Training runs[] = {
      {},
      {.dtype = DType::f32},
      {.dtype = DType::f16, .scaler = true, .infinite_at = 7},
      {.clip = 0.05},
      {.micro_batches = 2, .clip = 0.05, .scaler = true, .infinite_at = 3},
      {.freeze = true},
      {.dtype = DType::f32,
       .make = [](const ParameterList& p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
       }},
      {.dtype = DType::f32,
       .make = [](const ParameterList& p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions{.momentum = 0.5});
       }},
      {.dtype = DType::f32,
       .make = [](const ParameterList& p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions{.lr = 0.1});
       }},
      {.dtype = DType::f32,
       .make = [](const ParameterList& p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::NAdam>(p, optim::NAdamOptions{.weight_decay = 0.1});
       }},
      {.dtype = DType::f32,
       .make = [](const ParameterList& p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adam>(p, optim::AdamOptions{.amsgrad = true});
       }},
  };
  for (const Training& run : runs) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(text("run ", &run - runs, ", ", ranks, " ranks"));
      expect_as_unsharded(run, Sharding::states, ranks, kSameBits);
    }
  }
  expect_as_unsharded({.last = 200}, Sharding::states, 4, kSameBits);
}

TEST(Zero, ShardsOnADevice) {
  if (kernels::test_device().is_cpu()) {
    GTEST_SKIP() << "skipped: no device";
  }
  const Device device = kernels::test_device();
  expect_as_unsharded({.last = 10, .dtype = DType::f32, .clip = 0.05, .device = device},
                      Sharding::states, 2, kSameBits);
  expect_as_unsharded(
      {.last = 10, .dtype = DType::f16, .scaler = true, .infinite_at = 4, .device = device},
      Sharding::states, 3, kSameBits);
  // With six ranks, the last one owns nothing.
  expect_as_unsharded({.last = 10, .dtype = DType::f32, .clip = 0.05, .device = device},
                      Sharding::gradients, 6, 1e-5);
  expect_as_unsharded(
      {.last = 10, .dtype = DType::f16, .scaler = true, .infinite_at = 4, .device = device},
      Sharding::gradients, 2, kSameBits);
  expect_as_unsharded({.last = 6,
                       .dtype = DType::f32,
                       .scaler = true,
                       .infinite_at = 3,
                       .at_floor = optim::AtFloor::clip,
                       .device = device},
                      Sharding::gradients, 2, kSameBits);
}

// A sum of two numbers is unique; with three or more, the order depends on the range's owner.
TEST(Zero, ShardedGradientsEqualWholeOnes) {
  expect_as_unsharded({.dtype = DType::f32}, Sharding::gradients, 2, kSameBits);
  expect_as_unsharded({.dtype = DType::f16, .scaler = true, .infinite_at = 7}, Sharding::gradients,
                      2, kSameBits);
  expect_as_unsharded({.micro_batches = 3}, Sharding::gradients, 2, kSameBits);
  expect_as_unsharded({.freeze = true}, Sharding::gradients, 2, kSameBits);
  for (const int ranks : {2, 3, 6}) {  // with six ranks, the last one owns nothing
    expect_as_unsharded({.last = ranks == 3 ? 200 : 30, .clip = 0.05}, Sharding::gradients, ranks,
                        1e-12);
    expect_as_unsharded({.clip = 0.05, .scaler = true, .infinite_at = 3}, Sharding::gradients,
                        ranks, 1e-12);
  }
}

TEST(Zero, AnOverflowAtTheFloorIsClippedInShards) {
  expect_as_unsharded(
      {.last = 12, .scaler = true, .infinite_at = 3, .at_floor = optim::AtFloor::clip},
      Sharding::gradients, 2, kSameBits);
}

TEST(Zero, AnyNumberOfRanksLoadsTheStateOfAnyOther) {
  for (const DType dtype : {DType::f64, DType::f16}) {
    Training run{.last = 5, .dtype = dtype, .scaler = true};
    State state;
    const State* from = nullptr;
    for (const int ranks : {3, 1, 4, 2}) {
      State next;
      run_threads(ranks, [&](Communicator& group) {
        const Sharding sharding = ranks == 4 ? Sharding::gradients : Sharding::states;
        State own = train(run, group, sharding, from);
        if (group.is_root()) {
          next = std::move(own);
        }
      });
      state = std::move(next);
      from = &state;
      run.first = run.last;
      run.last += 5;
    }
    run_threads(1, [&](Communicator& alone) {
      const State whole =
          train({.last = 20, .dtype = dtype, .scaler = true}, alone, Sharding::none);
      check_close(values_of(state.model), values_of(whole.model),
                  dtype == DType::f64 ? 1e-12 : 0.05);
      check(state.scalars == whole.scalars, "the counters differ");
    });
  }
}

TEST(Zero, BytesAreAsPredicted) {
  constexpr int kRanks = 4;
  const int64_t wide = 300;  // large, so that rounding up matters little
  for (const Sharding sharding : {Sharding::none, Sharding::states, Sharding::gradients}) {
    std::atomic<int64_t> largest = 0, predicted = 0;
    int64_t grown = 0;
    run_threads(kRanks, [&](Communicator& group) {
      nn::MLP model({.in = 100, .hidden = {wide, wide}, .classes = 10});
      model.to(Device{}, Precision::mixed(DType::f16));
      const ParameterList parameters = model.parameters();
      predicted = predict_bytes(*parameters.arena(), 2, sharding, kRanks).total();
      if (sharding != Sharding::none) {
        parameters.shard(group, sharding);
      }
      group.barrier();
      const int64_t before = memory_stats().allocated;
      group.barrier();
      const auto adam = adamw(parameters);
      group.barrier();
      if (group.is_root()) {
        grown = memory_stats().allocated - before;
      }
      group.barrier();
      int64_t bytes = parameters.arena()->bytes() + adam->state_bytes(), seen = largest;
      while (seen < bytes && !largest.compare_exchange_weak(seen, bytes)) {
      }
    });
    EXPECT_EQ(largest, predicted) << to_string(sharding);
    const double moments = 8.0 * (100 * wide + wide * wide + 10 * wide + 2 * wide + 10);
    const double all = moments * (sharding == Sharding::none ? kRanks : 1);
    EXPECT_NEAR(static_cast<double>(grown), all, 0.3 * all) << to_string(sharding);
  }
}

TEST(Zero, GradientsAreGivenBackAfterTheReduction) {
  run_threads(2, [](Communicator& group) {
    SmallModel model(DType::f32);
    const ParameterList parameters = model.parameters();
    parameters.shard(group, Sharding::gradients);
    DistributedDataParallel ddp(group, parameters, {.check_every = 0});
    const uint64_t before = ddp.bytes_sent();
    const Rows rows = rows_of(0, 6 * group.rank(), 6, DType::f32);
    nn::cross_entropy(model(rows.x), rows.labels).backward();
    for (const Parameter& p : parameters) {
      check(!p.value.grad().defined(), p.name, " holds a gradient");
    }
    const int64_t numel = parameters.arena()->segments()[0].numel;
    const auto sent = static_cast<int64_t>(ddp.bytes_sent() - before);
    check(sent >= 4 * numel / 2 - 512 && sent < 4 * numel / 2 + 2000, "sent ", sent, " bytes for ",
          numel, " elements");
  });
}

std::string error_of(const std::function<void(Communicator&)>& body) {
  return binade::error_of([&] { run_threads(2, body); });
}

void expect_error(const std::string& part, const std::function<void(Communicator&)>& body) {
  const std::string error = error_of(body);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(ZeroErrors, WhatShardsCannotDoIsRefused) {
  expect_error("norms of whole parameters", [](Communicator& group) {
    SmallModel model(DType::f32);
    model.parameters().shard(group, Sharding::states);
    optim::LAMB lamb(model.parameters());
  });
  expect_error("shard before making it", [](Communicator& group) {
    SmallModel model(DType::f32);
    optim::SGD sgd(model.parameters(), {.lr = 1});
    model.parameters().shard(group, Sharding::states);
  });
  expect_error("sharded already", [](Communicator& group) {
    SmallModel model(DType::f32);
    model.parameters().shard(group, Sharding::states);
    model.parameters().shard(group, Sharding::gradients);
  });
}

TEST(ZeroErrors, GradientsOutsideOfTheShards) {
  const auto backward_on = [](SmallModel& model) {
    const Rows rows = rows_of(0, 0, 6, DType::f32);
    nn::cross_entropy(model(rows.x), rows.labels).backward();
  };
  expect_error("was not reduced into the shards", [&](Communicator& group) {
    SmallModel model(DType::f32);
    model.parameters().shard(group, Sharding::gradients);
    optim::SGD sgd(model.parameters(), {.lr = 1});
    backward_on(model);
    (void)sgd.step().value();
  });
  expect_error("StepOptions::clip_norm", [&](Communicator& group) {
    SmallModel model(DType::f32);
    model.parameters().shard(group, Sharding::gradients);
    DistributedDataParallel ddp(group, model.parameters());
    backward_on(model);
    optim::clip_grad_value(model.parameters(), 1);
  });
  expect_error("reduced into the shards of its ranks", [&](Communicator& group) {
    SmallModel model(DType::f32);
    model.parameters().shard(group, Sharding::gradients);
    DistributedDataParallel ddp(group, model.parameters());
    backward_on(model);
    backward_on(model);
  });
}

}  // namespace
}  // namespace binade::dist::zero_test
