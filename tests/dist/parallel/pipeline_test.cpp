// Compares stages on devices and on ranks with the same model as a whole.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/dist/parallel/pipeline.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <gtest/gtest.h>
#include <tests/support/error_of.h>

#include <cmath>

namespace binade::dist::pipeline_test {
namespace {

constexpr int64_t kIn = 6, kWidth = 10, kClasses = 4, kBatch = 14;

// Encoder, middle and decoder; stages with the same seed have the same values everywhere.
struct Model {
  Model() {
    manual_seed(5);
    for (const auto& [in, out] : {std::pair{kIn, kWidth}, {kWidth, kWidth}, {kWidth, kClasses}}) {
      stages.push_back(
          std::make_unique<nn::MLP>(nn::MLPOptions{.in = in, .hidden = {8}, .classes = out}));
      stages.back()->to(DType::f64);
    }
  }
  Tensor run(int stage, const Tensor& x) { return (*stages[static_cast<size_t>(stage)])(x); }
  std::vector<std::unique_ptr<nn::MLP>> stages;
};

struct Batch {
  explicit Batch(uint64_t seed, int64_t n = kBatch) {
    manual_seed(seed);
    x = randn({n, kIn}).to(DType::f64);
    target = empty({n}, DType::i64);
    for (int64_t i = 0; i < n; ++i) {
      target.data<int64_t>()[i] = (i * 3 + static_cast<int64_t>(seed)) % kClasses;
    }
  }
  Tensor x, target;
};

Tensor loss_of(const Tensor& y, const Tensor& target) { return nn::cross_entropy(y, target); }

// The gradients of the whole model without a pipeline, by stage and parameter.
std::vector<std::vector<Tensor>> reference_gradients(const Batch& batch, double* loss = nullptr) {
  Model model;
  const Tensor value = loss_of(model.run(2, model.run(1, model.run(0, batch.x))), batch.target);
  value.backward();
  if (loss) {
    *loss = value.item();
  }
  std::vector<std::vector<Tensor>> out;
  for (const auto& stage : model.stages) {
    auto& list = out.emplace_back();
    for (const Parameter& p : stage->parameters()) {
      list.push_back(p.value.grad());
    }
  }
  return out;
}

double largest_difference(nn::Module& stage, const std::vector<Tensor>& expected) {
  double largest = 0;
  const ParameterList parameters = stage.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor got = parameters[i].value.grad().to(Device{});
    for (int64_t k = 0; k < got.numel(); ++k) {
      largest = std::max(largest, std::abs(got.at(k) - expected[i].at(k)));
    }
  }
  return largest;
}

TEST(PipelineSteps, HoldNoMoreThanTheyMust) {
  using S = PipelineStep;
  EXPECT_EQ(pipeline_steps(PipelineSchedule::gpipe, 0, 2, 2),
            (std::vector<S>{{true, 0}, {true, 1}, {false, 0}, {false, 1}}));
  EXPECT_EQ(pipeline_steps(PipelineSchedule::one_forward_one_backward, 1, 2, 2),
            (std::vector<S>{{true, 0}, {false, 0}, {true, 1}, {false, 1}}));
  EXPECT_EQ(pipeline_steps(PipelineSchedule::one_forward_one_backward, 0, 2, 3),
            (std::vector<S>{{true, 0}, {true, 1}, {false, 0}, {true, 2}, {false, 1}, {false, 2}}));
  EXPECT_THROW(pipeline_steps(PipelineSchedule::gpipe, 2, 2, 1), Error);
}

class PipelineOnDevices : public testing::TestWithParam<PipelineSchedule> {};
INSTANTIATE_TEST_SUITE_P(Schedules, PipelineOnDevices,
                         testing::Values(PipelineSchedule::gpipe,
                                         PipelineSchedule::one_forward_one_backward));

TEST_P(PipelineOnDevices, EqualsOneDevice) {
  const Batch batch(3);
  double expected_loss = 0;
  const auto expected = reference_gradients(batch, &expected_loss);
  for (const int micro : {1, 3, 4, 14}) {
    Model model;
    std::vector<PipelineStage> stages;
    for (int s = 0; s < 3; ++s) {
      const Device device = Device::parse(text("cpu:", s + 1));
      model.stages[static_cast<size_t>(s)]->to(device);
      model.stages[static_cast<size_t>(s)]->to(DType::f64);
      stages.push_back({device, [&model, s](const Tensor& x) { return model.run(s, x); }});
    }
    Pipeline pipeline(stages, {.micro_batches = micro, .schedule = GetParam()});
    const double loss = pipeline.step(batch.x, batch.target, loss_of);
    EXPECT_NEAR(loss, expected_loss, 1e-12);
    for (int s = 0; s < 3; ++s) {
      auto& stage = *model.stages[static_cast<size_t>(s)];
      EXPECT_LT(largest_difference(stage, expected[static_cast<size_t>(s)]), 1e-12)
          << "stage " << s << ", " << micro << " micro-batches";
      const bool flush = GetParam() == PipelineSchedule::gpipe;
      EXPECT_EQ(pipeline.most_held(s), flush ? micro : std::min(micro, 3 - s));
    }
    const Tensor y = pipeline.forward(batch.x);
    EXPECT_EQ(y.device(), stages[2].device);
  }
}

TEST(Pipeline, TwoStepsAddUpAndTheScaleTagsGradients) {
  const Batch batch(4);
  const auto expected = reference_gradients(batch);
  Model model;
  std::vector<PipelineStage> stages;
  for (int s = 0; s < 3; ++s) {
    stages.push_back({Device{}, [&model, s](const Tensor& x) { return model.run(s, x); }});
  }
  Pipeline pipeline(stages, {.micro_batches = 2});
  pipeline.step(batch.x, batch.target, loss_of, {.scale = 1024});
  EXPECT_LT(largest_difference(*model.stages[0], expected[0]), 1e-12);
  pipeline.step(batch.x, batch.target, loss_of, {.scale = 1024});
  const Tensor twice = model.stages[0]->parameters()[0].value.grad();
  EXPECT_NEAR(twice.at(0), 2 * expected[0][0].at(0), 1e-12);
}

TEST(Pipeline, NamesWhatDoesNotFit) {
  const PipelineStage same{Device{}, [](const Tensor& x) { return x * 2; }};
  const PipelineStage constant{Device{}, [](const Tensor& x) {
                                 Tensor w = ones(x.sizes());
                                 w.require_grad();
                                 return w * x.detach();
                               }};
  const PipelineLoss loss = [](const Tensor& y, const Tensor&) { return mean(y); };
  EXPECT_EQ(error_of([&] { Pipeline({}); }),
            "pipeline: got 0 stages and 4 micro-batches, expected one or more");
  EXPECT_EQ(error_of([&] {
              Pipeline({same}).step(ones({3, 2}), ones({3}), loss);
            }),
            "pipeline: got a batch of 3 samples, expected at least one for each of 4 "
            "micro-batches");
  EXPECT_EQ(error_of([&] {
              Pipeline({same, constant}, {.micro_batches = 1}).step(ones({3, 2}), ones({3}), loss);
            }),
            "pipeline: the output of stage 1 does not depend on its input, so the stages before "
            "get no gradient");
}

// An encoder on some ranks, a middle and a decoder on others, each with replicas whose gradients
// are averaged. The result must equal one device with the whole batch.
struct Hybrid {
  int stages, replicas, micro;
  PipelineSchedule schedule;
};

class PipelineOnRanks : public testing::TestWithParam<Hybrid> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, PipelineOnRanks,
    testing::Values(Hybrid{1, 2, 2, PipelineSchedule::gpipe},
                    Hybrid{3, 1, 4, PipelineSchedule::gpipe},
                    Hybrid{3, 2, 3, PipelineSchedule::gpipe},
                    Hybrid{3, 1, 7, PipelineSchedule::one_forward_one_backward},
                    Hybrid{3, 2, 2, PipelineSchedule::one_forward_one_backward},
                    Hybrid{3, 1, 1, PipelineSchedule::one_forward_one_backward}));

TEST_P(PipelineOnRanks, EqualsOneDevice) {
  const Hybrid& shape = GetParam();
  const Batch batch(6, kBatch);
  double expected_loss = 0;
  const auto expected = reference_gradients(batch, &expected_loss);
  run_threads(shape.stages * shape.replicas, [&](Communicator& all) {
    const int stage = all.rank() / shape.replicas;
    PipelineRank pipeline(all, stage, shape.stages);
    const int replica = pipeline.replicas().rank();
    check(pipeline.replicas().size() == shape.replicas, "replicas");
    Model model;
    const auto forward = [&](const Tensor& x) {
      if (shape.stages == 3) {
        return model.run(stage, x);
      }
      return model.run(2, model.run(1, model.run(0, x.to(Device{}))).to(x.device()));
    };
    // Gives each stage of this rank an arena.
    const int first = shape.stages == 3 ? stage : 2;
    nn::Module& own = *model.stages[static_cast<size_t>(first)];
    own.to(Device::parse(text("cpu:", all.rank())));
    own.to(DType::f64);
    DistributedDataParallel ddp(pipeline.replicas(), own.parameters());
    pipeline.set_stage({own.device(), forward, &ddp},
                       {.micro_batches = shape.micro, .schedule = shape.schedule});
    const int64_t share = kBatch / shape.replicas;
    const Tensor x = slice(batch.x, 0, replica * share, (replica + 1) * share),
                 target = slice(batch.target, 0, replica * share, (replica + 1) * share);
    const double loss = pipeline.step(x, target, loss_of);
    if (stage == shape.stages - 1 && shape.replicas == 1) {
      check(std::abs(loss - expected_loss) < 1e-12, "loss ", loss, ", expected ", expected_loss);
    }
    ddp.finish();
    check(ddp.reductions() == 1, "reduced ", ddp.reductions(), " times");
    const double difference = largest_difference(own, expected[static_cast<size_t>(first)]);
    check(difference < 1e-12, "stage ", stage, " differs by ", difference);
  });
}

// Stages with different numbers of ranks, for example an encoder on two and a decoder on three.
struct Uneven {
  std::vector<int> ranks;  // ranks of each stage
  int micro;
  PipelineSchedule schedule;
};

class PipelineOnUnevenRanks : public testing::TestWithParam<Uneven> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, PipelineOnUnevenRanks,
    testing::Values(Uneven{{1, 2, 1}, 2, PipelineSchedule::gpipe},
                    Uneven{{2, 1, 3}, 2, PipelineSchedule::gpipe},
                    Uneven{{3, 2, 1}, 4, PipelineSchedule::one_forward_one_backward},
                    Uneven{{2, 3, 4}, 1, PipelineSchedule::one_forward_one_backward},
                    Uneven{{1, 4, 2}, 4, PipelineSchedule::one_forward_one_backward},
                    Uneven{{4, 1, 1}, 2, PipelineSchedule::one_forward_one_backward}));

TEST_P(PipelineOnUnevenRanks, EqualsOneDevice) {
  const Uneven& shape = GetParam();
  constexpr int64_t kRows = 48;
  const Batch batch(8, kRows);
  double expected_loss = 0;
  const auto expected = reference_gradients(batch, &expected_loss);
  const auto ranks_of = [&](int stage) { return shape.ranks[static_cast<size_t>(stage)]; };
  run_threads(ranks_of(0) + ranks_of(1) + ranks_of(2), [&](Communicator& all) {
    int stage = 0;
    for (int first = 0; all.rank() >= first + ranks_of(stage); ++stage) {
      first += ranks_of(stage);
    }
    PipelineRank pipeline(all, stage, 3);
    check(pipeline.replicas().size() == ranks_of(stage), "replicas");
    Model model;
    nn::Module& own = *model.stages[static_cast<size_t>(stage)];
    own.to(Device::parse(text("cpu:", all.rank() % 8)));
    own.to(DType::f64);
    DistributedDataParallel ddp(pipeline.replicas(), own.parameters());
    const auto forward = [&](const Tensor& x) { return model.run(stage, x); };
    pipeline.set_stage({own.device(), forward, &ddp},
                       {.micro_batches = shape.micro, .schedule = shape.schedule});
    const std::vector<int64_t> rows = pipeline.rows(kRows);
    std::vector<Tensor> x, target;
    for (const int64_t row : rows) {
      x.push_back(slice(batch.x, 0, row, row + 1));
      target.push_back(slice(batch.target, 0, row, row + 1));
    }
    for (int step = 1; step <= 2; ++step) {
      const double loss = pipeline.step(cat(x), cat(target), loss_of);
      if (stage == 2) {
        const Tensor mean_loss = full({1}, loss, DType::f64);
        pipeline.replicas().all_reduce(mean_loss, ReduceOp::avg);
        check(std::abs(mean_loss.item() - expected_loss) < 1e-12, "loss ", mean_loss.item(),
              ", expected ", expected_loss);
      }
      ddp.finish();
      check(ddp.reductions() == step, "reduced ", ddp.reductions(), " times");
      const double difference = largest_difference(own, expected[static_cast<size_t>(stage)]);
      check(difference < 1e-12, "stage ", stage, " differs by ", difference);
      for (const Parameter& p : own.parameters()) {
        p.value.zero_grad();
      }
    }
  });
}

TEST(PipelineRanks, NameWhatDoesNotFit) {
  EXPECT_EQ(
      error_of([] { run_threads(3, [](Communicator& all) { PipelineRank(all, all.rank(), 4); }); }),
      "pipeline: stage 3 of 4 has no rank, expected one or more of 3");
  const auto step_with = [](int64_t images, int64_t targets) {
    return error_of([=] {
      run_threads(3, [=](Communicator& all) {
        const int stage = std::min(all.rank(), 1);
        PipelineRank pipeline(all, stage, 2);
        pipeline.set_stage({Device{}, [](const Tensor& x) { return x * 2; }}, {.micro_batches = 1});
        check(all.rank() != 0 || pipeline.rows(4) == std::vector<int64_t>{0, 1, 2, 3}, "rows");
        pipeline.step(ones({images, 2}), ones({targets}),
                      [](const Tensor& y, const Tensor&) { return mean(y); });
      });
    });
  };
  EXPECT_EQ(step_with(3, 1),
            "pipeline: got micro-batches of 3 rows on each of 1 ranks, which the 2 ranks of the "
            "neighbouring stage cannot share; choose a batch that all can divide");
  EXPECT_EQ(step_with(4, 4),
            "pipeline: got 2 rows of micro-batch 0 from the stage before and 4 targets; "
            "PipelineRank::rows() says which rows of a batch a rank has");
}

}  // namespace
}  // namespace binade::dist::pipeline_test
