// Tests DistributedDataParallel. Ranks are threads; each has its own model.
#include <binade/core/autograd/hooks.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/losses.h>
#include <binade/optim/adamw.h>
#include <binade/optim/clip.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/training_cases.h>
#include <tests/support/error_of.h>

#include <atomic>
#include <cmath>

namespace binade::dist::distributed_data_parallel_test {
namespace {

constexpr int64_t kBatch = 12;
using Model = SmallModel;

struct Run {
  int64_t steps = 60, micro_batches = 1;
  DType dtype = DType::f64;
  double clip = 0;
  int64_t bucket_bytes = 600;
};

// Trains as rank `rank` of `ranks` on its rows of each batch, with or without a group.
std::vector<double> train(const Run& run, Communicator* group) {
  const int ranks = group ? group->size() : 1, rank = group ? group->rank() : 0;
  Model model(run.dtype);
  std::unique_ptr<DistributedDataParallel> ddp;
  if (group) {
    ddp = std::make_unique<DistributedDataParallel>(
        *group, model.parameters(),
        DistributedDataParallelOptions{.bucket_bytes = run.bucket_bytes, .check_every = 10});
    check(ddp->buckets() > 1, "one bucket shows no order");
  }
  optim::AdamW adam(model.parameters(), {.lr = 0.01});
  const int64_t own = kBatch / ranks, micro = own / run.micro_batches;
  for (int64_t step = 0; step < run.steps; ++step) {
    for (int64_t m = 0; m < run.micro_batches; ++m) {
      if (ddp) {
        ddp->set_reduce(m == run.micro_batches - 1);
      }
      const Rows data = rows_of(step, rank * own + m * micro, micro, run.dtype);
      mul(nn::cross_entropy(model(data.x), data.labels), 1.0 / run.micro_batches).backward();
    }
    if (run.clip > 0) {
      optim::clip_grad_norm(model.parameters(), run.clip);
    }
    check(adam.step() == optim::StepOutcome::applied, "the step was skipped");
    adam.zero_grad();
    if (ddp) {
      ddp->finish();
      ddp->compare_parameters();  // bit-identical in every step
    }
  }
  return values_of(model.state());
}

void expect_equal_to_one_rank(const Run& run, int ranks, double tolerance) {
  const std::vector<double> alone = train(run, nullptr);
  run_threads(ranks,
              [&](Communicator& world) { check_close(train(run, &world), alone, tolerance); });
}

TEST(DistributedDataParallel, EqualsOneRankWithTheWholeBatch) {
  for (const int ranks : {1, 2, 3, 4}) {
    expect_equal_to_one_rank({}, ranks, 1e-12);
  }
  expect_equal_to_one_rank({.steps = 200}, 2, 1e-12);
}

TEST(DistributedDataParallel, EqualsOneRankInF32) {
  expect_equal_to_one_rank({.steps = 200, .dtype = DType::f32}, 2, 1e-5);
}

TEST(DistributedDataParallel, EqualsOneRankWithAccumulationAndClipping) {
  expect_equal_to_one_rank({.micro_batches = 3}, 2, 1e-12);
  expect_equal_to_one_rank({.micro_batches = 2, .clip = 0.05}, 3, 1e-12);
}

TEST(DistributedDataParallel, AWindowIsReducedOnce) {
  run_threads(2, [](Communicator& world) {
    Model model(DType::f32);
    DistributedDataParallel ddp(world, model.parameters(), {.check_every = 0});
    const uint64_t before = ddp.bytes_sent();
    uint64_t once = 0;
    for (const int micro_batches : {1, 4}) {
      const uint64_t start = ddp.bytes_sent();
      for (int m = 0; m < micro_batches; ++m) {
        ddp.set_reduce(m == micro_batches - 1);
        const Rows data = rows_of(m, world.rank(), 3, DType::f32);
        nn::cross_entropy(model(data.x), data.labels).backward();
      }
      once = once ? once : ddp.bytes_sent() - start;
      check(ddp.bytes_sent() - start == once, "sent ", ddp.bytes_sent() - start, ", not ", once);
    }
    check(once > 0 && ddp.bytes_sent() - before == 2 * once && ddp.reductions() == 2, "reductions ",
          ddp.reductions());
  });
}

// An overflow on one rank reaches all ranks through the average, so every scaler skips.
TEST(DistributedDataParallel, AnOverflowOnOneRankIsSeenByAll) {
  run_threads(3, [](Communicator& world) {
    Model model(DType::f32);
    DistributedDataParallel ddp(world, model.parameters());
    optim::SGD sgd(model.parameters(), {.lr = 0.1});
    optim::LossScaler scaler;
    for (int step = 0; step < 6; ++step) {
      const Rows data = rows_of(step, world.rank(), 3, DType::f32);
      if (step == 3 && world.rank() == 1) {
        data.x.fill_(INFINITY);
      }
      scaler.scale(nn::cross_entropy(model(data.x), data.labels)).backward();
      const optim::StepOutcome outcome = scaler.step(sgd);
      check((outcome == optim::StepOutcome::overflow) == (step == 3), "step ", step, " on rank ",
            world.rank());
      ddp.compare_parameters();
    }
    check(scaler.scale() == 32768, "scale ", scaler.scale());
  });
}

std::string error_of(int ranks, const std::function<void(Communicator&)>& body) {
  return binade::error_of([&] { run_threads(ranks, body); });
}

TEST(DistributedDataParallelErrors, ARankWithOtherValuesIsNamed) {
  EXPECT_EQ(
      error_of(3,
               [](Communicator& world) {
                 Model model(DType::f32);
                 if (world.rank() == 2) {
                   const NoGradGuard guard;
                   model.parameters()[1].value.detach().fill_(0.5);
                 }
                 DistributedDataParallel ddp(world, model.parameters());
               }),
      "data parallel: the values of fc1.bias on rank 2 differ from rank 0; give every rank the "
      "same seed or checkpoint");
}

TEST(DistributedDataParallelErrors, ARankThatDriftsAwayIsNamed) {
  EXPECT_EQ(error_of(3,
                     [](Communicator& world) {
                       Model model(DType::f32);
                       DistributedDataParallel ddp(world, model.parameters(), {.check_every = 4});
                       optim::SGD sgd(model.parameters(), {.lr = 0.1});
                       for (int step = 0; step < 20; ++step) {
                         if (step == 5 && world.rank() == 0) {  // changes one bit
                           float& value = model.parameters()[2].value.detach().data<float>()[3];
                           value = std::nextafter(value, 1e9F);
                         }
                         const Rows data = rows_of(step, world.rank(), 3, DType::f32);
                         nn::cross_entropy(model(data.x), data.labels).backward();
                         (void)sgd.step().value();
                       }
                     }),
            "data parallel: the values of fc2.weight on rank 0 differ from rank 1 after 8 "
            "reductions: that rank changed them by itself, or its memory is faulty");
}

TEST(DistributedDataParallelErrors, AnotherModelIsNamed) {
  const std::string error = error_of(2, [](Communicator& world) {
    nn::MLP model({.in = 4 + world.rank(), .hidden = {3}, .classes = 2});
    DistributedDataParallel ddp(world, model.parameters());
  });
  EXPECT_NE(error.find("parameter 0 of rank 1 is another one than on rank 0"), std::string::npos)
      << error;
}

// Each rank has its own data: the first one without data leaves, or does something else.
TEST(DistributedDataParallelErrors, UnevenDataEndAllInThatStep) {
  for (const bool leaves : {false, true}) {
    std::atomic<int> steps = 0;
    const std::string error = error_of(3, [&](Communicator& world) {
      Model model(DType::f32);
      DistributedDataParallel ddp(world, model.parameters());
      for (int step = 0; step < (world.rank() == 1 ? 2 : 4); ++step) {
        const Rows data = rows_of(step, world.rank(), 3, DType::f32);
        nn::cross_entropy(model(data.x), data.labels).backward();
        steps += world.rank() == 0;
      }
      if (!leaves) {
        ddp.compare_parameters();
      }
    });
    EXPECT_EQ(steps, 2);
    EXPECT_NE(error.find("rank  state"), std::string::npos) << error;
    EXPECT_NE(error.find(leaves ? "rank 1" : "ranks call different collectives"), std::string::npos)
        << error;
  }
}

TEST(DistributedDataParallelErrors, UnusedParametersAreNamed) {
  const std::string expected =
      "data parallel: the last backward did not reach 2 of 6 parameters: fc3.weight, fc3.bias; "
      "their "
      "gradients were not reduced. Freeze them, or use them in every loss";
  EXPECT_EQ(error_of(2,
                     [](Communicator& world) {
                       Model model(DType::f32);
                       DistributedDataParallel ddp(world, model.parameters());
                       const ParameterList p = model.parameters();
                       const Tensor h = add(
                           matmul(ones({1, kFeatures}), p[0].value.transpose(0, 1)), p[1].value);
                       sum(add(matmul(h, p[2].value.transpose(0, 1)), p[3].value)).backward();
                       ddp.finish();
                     }),
            expected);
}

TEST(DistributedDataParallelErrors, AnExceptionInBackwardEndsAllAtOnce) {
  EXPECT_EQ(error_of(3,
                     [](Communicator& world) {
                       Model model(DType::f32);
                       DistributedDataParallel ddp(world, model.parameters(),
                                                   {.bucket_bytes = 600});
                       HookHandle fault;
                       if (world.rank() == 1) {  // while the buckets above are in flight
                         fault = on_gradient(model.parameters()[0].value,
                                             [](Tensor&) { fail("rank 1 is out of ideas"); });
                       }
                       const Rows data = rows_of(0, world.rank(), 3, DType::f32);
                       nn::cross_entropy(model(data.x), data.labels).backward();
                     }),
            "rank 1 is out of ideas");
}

}  // namespace
}  // namespace binade::dist::distributed_data_parallel_test
