// Compares the classic scheme with DistributedDataParallel: equal training, different traffic.
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/data_parallel.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/losses.h>
#include <binade/optim/adamw.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/training_cases.h>
#include <tests/support/error_of.h>

#include <mutex>

namespace binade::dist::data_parallel_test {
namespace {

constexpr int64_t kBatch = 12;
constexpr int64_t kHeader = 32, kKind = 8 * (2 + kMaxDims);  // of a collective; of a tensor's kind

struct Traffic {
  StepBytes bytes;
  std::vector<double> values;  // values on rank 0 after training
};

// Trains for three steps and counts the traffic of the last one.
template <class Step>
Traffic train(int ranks, const Step& make_step) {
  Traffic traffic;
  std::mutex mutex;
  run_threads(ranks, [&](Communicator& group) {
    SmallModel model(DType::f64);
    const auto step = make_step(group, model);
    optim::AdamW adam(model.parameters(), {.lr = 0.01});
    for (int i = 0; i < 3; ++i) {
      const auto [sent, received] = step(i);
      if (step.updates(group)) {
        check(adam.step() == optim::StepOutcome::applied, "the step was skipped");
      }
      adam.zero_grad();
      const std::lock_guard lock(mutex);
      if (i == 2) {
        traffic.bytes.total += sent;
        traffic.bytes.busiest = std::max({traffic.bytes.busiest, sent, received});
      }
    }
    const std::lock_guard lock(mutex);
    if (group.is_root()) {
      traffic.values = values_of(model.state());
    }
  });
  return traffic;
}

struct Moved {
  int64_t sent, received;
};

struct Classic {
  Classic(Communicator& group, SmallModel& model)
      : group(group), model(model), parallel(group, model.parameters()) {}
  bool updates(const Communicator& g) const { return g.is_root(); }
  Moved operator()(int i) const {
    const uint64_t sent = group.bytes_sent(), received = group.bytes_received(),
                   collectives = group.collectives();
    const Rows rows = rows_of(i, 0, kBatch, DType::f64);
    const double loss = parallel.step(
        group.is_root() ? rows.x : Tensor(), group.is_root() ? rows.labels : Tensor(),
        [&](const Tensor& x) { return model(x); },
        [](const Tensor& y, const Tensor& t) { return nn::cross_entropy(y, t); });
    check((loss > 0) == group.is_root(), "loss ", loss);
    const auto headers = static_cast<int64_t>(group.collectives() - collectives) * kHeader;
    const bool last = group.rank() == group.size() - 1;
    return {static_cast<int64_t>(group.bytes_sent() - sent) - headers - (last ? 0 : kKind),
            static_cast<int64_t>(group.bytes_received() - received) - headers -
                (group.is_root() ? 0 : kKind)};
  }
  Communicator& group;
  SmallModel& model;
  mutable DataParallel parallel;
};

struct Distributed {
  Distributed(Communicator& group, SmallModel& model)
      : group(group), model(model), ddp(group, model.parameters(), {.check_every = 0}) {}
  bool updates(const Communicator&) const { return true; }
  Moved operator()(int i) const {
    const int64_t own = kBatch / group.size();
    const uint64_t before = ddp.bytes_sent();
    const Rows rows = rows_of(i, group.rank() * own, own, DType::f64);
    nn::cross_entropy(model(rows.x), rows.labels).backward();
    const auto sent = static_cast<int64_t>(ddp.bytes_sent() - before) - ddp.buckets() * kHeader;
    return {sent, sent};
  }
  Communicator& group;
  SmallModel& model;
  DistributedDataParallel ddp;
};

TEST(DataParallel, TrainsAsDistributedDataParallelWithTheBytesOfItsTable) {
  int64_t parameter_bytes = 0;
  SmallModel model(DType::f64);
  const std::shared_ptr<Arena> arena = model.parameters().arena();
  for (const Arena::Segment& segment : arena->segments()) {
    parameter_bytes += segment.numel * 8;
  }
  const int64_t batch_bytes = kBatch * kFeatures * 8, output_bytes = kBatch * kClasses * 8;
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const Traffic classic =
        train(ranks, [](Communicator& group, SmallModel& model) { return Classic(group, model); });
    const Traffic distributed = train(
        ranks, [](Communicator& group, SmallModel& model) { return Distributed(group, model); });
    check_close(classic.values, distributed.values, 1e-12);
    const StepBytes expected =
        data_parallel_bytes(parameter_bytes, batch_bytes, output_bytes, ranks);
    EXPECT_EQ(classic.bytes.total, expected.total);
    EXPECT_EQ(classic.bytes.busiest, expected.busiest);
    const StepBytes ring = distributed_data_parallel_bytes(parameter_bytes, ranks);
    EXPECT_EQ(distributed.bytes.total, ring.total);
    EXPECT_NEAR(static_cast<double>(distributed.bytes.busiest), static_cast<double>(ring.busiest),
                8 * 2 * ranks);  // segments differ by one element
  }
}

// The table in docs/distributed.md: an MLP of 784, 512, 512 and 10, batch 256, f32.
TEST(DataParallel, TheTableOfTheDocs) {
  const int64_t parameters = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
  const auto kib = [](int64_t bytes) { return (bytes + 512) / 1024; };
  const int64_t expected[][5] = {
      {2, 5232, 5634, 2616, 3013}, {4, 15696, 16299, 3924, 7856}, {8, 36625, 37328, 4578, 18321}};
  for (const auto& row : expected) {
    const auto ranks = static_cast<int>(row[0]);
    const StepBytes ring = distributed_data_parallel_bytes(parameters, ranks),
                    classic = data_parallel_bytes(parameters, 256 * 784 * 4, 256 * 10 * 4, ranks);
    EXPECT_EQ(kib(ring.total), row[1]);
    EXPECT_EQ(kib(classic.total), row[2]);
    EXPECT_EQ(kib(ring.busiest), row[3]);
    EXPECT_EQ(kib(classic.busiest), row[4]);
  }
}

TEST(DataParallelErrors, NameWhatDoesNotFit) {
  const auto step_with = [](int64_t rows) {
    return error_of([&] {
      run_threads(2, [&](Communicator& group) {
        SmallModel model(DType::f64);
        DataParallel parallel(group, model.parameters());
        parallel.step(ones({rows, kFeatures}, DType::f64), {}, {}, {});
      });
    });
  };
  EXPECT_EQ(step_with(3),
            "data parallel: got a batch of 3 samples, expected a multiple of 2 ranks");
  EXPECT_EQ(error_of([] {
              run_threads(2, [](Communicator& group) {
                SmallModel model(DType::f64);
                model.parameters().shard(group, Sharding::states);
                DataParallel(group, model.parameters());
              });
            }),
            "data parallel: got a sharded arena, expected the parameters of a model, not sharded");
}

TEST(Communicator, ScattersAndGathersParts) {
  for (const int ranks : {1, 2, 3}) {
    for (const int root : {0, ranks - 1}) {
      run_threads(ranks, [&](Communicator& group) {
        const bool is_root = group.rank() == root;
        Tensor all = is_root ? zeros({ranks, 2}, DType::i64) : Tensor();
        for (int i = 0; is_root && i < 2 * ranks; ++i) {
          all.data<int64_t>()[i] = 10 + i;
        }
        const Tensor part = zeros({2}, DType::i64);
        group.scatter(all, part, root);
        check(part.at(0) == 10 + 2 * group.rank() && part.at(1) == 11 + 2 * group.rank(), "got ",
              part.at(0), " ", part.at(1));
        part.fill_(group.rank());
        group.gather(part, all, root);
        for (int i = 0; is_root && i < 2 * ranks; ++i) {
          check(all.at(i) == i / 2, "element ", i, " is ", all.at(i));
        }
      });
    }
  }
  EXPECT_EQ(error_of([] {
              run_threads(1, [](Communicator& group) { group.gather(zeros({2}), zeros({3})); });
            }),
            "gather: got 3 elements for 1 parts of 2, expected 2 of the same dtype");
}

}  // namespace
}  // namespace binade::dist::data_parallel_test
