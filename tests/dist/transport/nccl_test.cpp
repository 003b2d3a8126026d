// Tests NCCL with a fake library (fake_nccl.cpp) and the emulated device.
#include <binade/core/autograd/op.h>
#include <binade/core/device/stream.h>
#include <binade/core/ops.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/dist/transport/nccl_transport.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <tests/dist/collective/ring_cases.h>
#include <tests/dist/job/ranks.h>
#include <tests/dist/job/run_program.h>
#include <tests/dist/transport/transport_cases.h>

#include <cmath>
#include <cstdlib>

namespace binade::dist::nccl_test {
namespace {

#ifdef BINADE_FAKE_NCCL
constexpr const char* kFake = BINADE_FAKE_NCCL;
#else
constexpr const char* kFake = "/nonexistent/libnccl.so.2";
#endif

// Must run before anything uses NCCL.
[[maybe_unused]] const bool kChosen = ::setenv("BINADE_NCCL_LIBRARY", kFake, 1) == 0;

constexpr Device kEmulated{Device::kEmulated, 0};

std::string communicator_error(int ranks, const std::function<void(Communicator&)>& body) {
  try {
    run_threads(ranks, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

#ifndef BINADE_FAKE_NCCL

TEST(Nccl, IsMissedByName) {
  EXPECT_NE(nccl_missing(), "");
  const std::string error =
      communicator_error(2, [](Communicator& group) { group.connect_devices(kEmulated); });
  EXPECT_EQ(error.rfind("connect_devices: rank 0 has no NCCL", 0), 0u) << error;
}

#else

class Nccl : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, testing::Values(1, 2, 3));

// Runs `body` over NCCL; the ranks first meet as threads.
void run_nccl(int ranks, const std::function<void(Transport&)>& body) {
  expect_no_errors(run_ranks(ranks, [&](Transport& meeting) {
    const std::shared_ptr<Transport> borrowed(&meeting, [](Transport*) {});
    body(*make_nccl_transport(borrowed, kEmulated));
  }));
}

TEST_P(Nccl, DoesWhatATransportMust) {
  run_nccl(GetParam(), [](Transport& t) {
    pass_on(t);
    keep_order(t);
    split_in_two(t);
  });
}

TEST_P(Nccl, RingIsExactOnTheDevice) {
  run_nccl(GetParam(), [](Transport& t) {
    exact_collectives(t, {0, 1, 203}, {});
    exact_collectives(t, {77}, {.f32_carry = true, .piece_bytes = 64});
    gather_and_broadcast(t, {0, 1, 203}, {.piece_bytes = 64});
    same_bits(t, 501, {.piece_bytes = 256});
  });
}

// The device must add like the CPU.
TEST(NcclRing, HasTheBitsOfTheCpu) {
  std::vector<uint32_t> on_cpu(6), on_device(6);
  const auto all_bits = [](Transport& t, std::vector<uint32_t>& out) {
    for (size_t i = 0; i < std::size(kReducedDTypes); ++i) {
      const uint32_t bits = reduced_bits(t, 700, kReducedDTypes[i], ReduceOp::avg, {});
      if (t.rank() == 0) {
        out[i] = bits;
      }
    }
  };
  expect_no_errors(run_ranks(3, [&](Transport& t) { all_bits(t, on_cpu); }));
  run_nccl(3, [&](Transport& t) { all_bits(t, on_device); });
  EXPECT_EQ(on_cpu, on_device);
}

TEST(NcclRing, NamesMemoryOfAnotherDevice) {
  const auto errors = run_ranks(2, [](Transport& meeting) {
    const std::shared_ptr<Transport> borrowed(&meeting, [](Transport*) {});
    ring_all_reduce(*make_nccl_transport(borrowed, kEmulated), zeros({3}), ReduceOp::sum);
  });
  EXPECT_EQ(errors[0], "ring: got a view on cpu, expected contiguous memory of emulated:0");
}

TEST(NcclCommunicator, KeepsTensorsOnTheirDevice) {
  EXPECT_EQ(
      communicator_error(
          3,
          [](Communicator& group) {
            group.connect_devices(kEmulated);
            check(group.has_devices(), "no devices");
            const int n = group.size(), rank = group.rank();
            const uint64_t before = group.transport().bytes_sent();
            for (const DType dtype : kReducedDTypes) {
              for (const Algorithm algorithm : {Algorithm::ring, Algorithm::library}) {
                for (const ReduceOp op :
                     {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
                  const Tensor x = rank_values(301, rank, n, dtype).to(kEmulated);
                  group.all_reduce(x, op, {.algorithm = algorithm});
                  check_values(x, 0, n, op, text("all_reduce ", dtype, " ", to_string(op)));
                }
              }
            }
            const Tensor all = group.all_gather(full({2}, rank, DType::f32, kEmulated));
            check(all.device() == kEmulated && all.at(4) == 2, "all_gather: ", all.at(4));
            const Tensor part = group.reduce_scatter(full({3, 4}, rank, DType::f32, kEmulated));
            check(part.device() == kEmulated && part.at(3) == 3, "reduce_scatter: ", part.at(3));
            const Tensor y = full({5}, rank, DType::i32, kEmulated);
            group.broadcast(y, 2);
            check(y.at(1) == 2, "broadcast: ", y.at(1));
            const std::vector<int64_t> bounds = {0, 5, 5, 7};
            const Tensor ranges = full({7}, rank + 1, DType::f32, kEmulated);
            group.reduce_scatter_ranges(ranges, bounds, ReduceOp::sum);
            group.gather_ranges(ranges, bounds);
            check(ranges.at(0) == 6 && ranges.at(6) == 6, "ranges: ", ranges.at(0), " ",
                  ranges.at(6));
            // Only the descriptions of the tensors go through the host.
            const uint64_t each = 40;
            check(group.transport().bytes_sent() - before <= each * 60, "the host carried ",
                  group.transport().bytes_sent() - before, " bytes");
            const Tensor host = full({3}, rank);
            group.all_reduce(host);
            check(host.at(0) == 3, "all_reduce on the CPU: ", host.at(0));
          }),
      "");
}

TEST(NcclCommunicator, SplitsDevicesToo) {
  EXPECT_EQ(communicator_error(
                3,
                [](Communicator& group) {
                  group.connect_devices(kEmulated);
                  const auto part = group.split(group.rank() % 2);
                  check(part->size() == 1 || part->has_devices(), "the part has no devices");
                  const Tensor x = full({9}, group.rank() + 1, DType::f64, kEmulated);
                  part->all_reduce(x);
                  check(x.at(8) == (group.rank() == 1 ? 2 : 4), "got ", x.at(8));
                  group.all_reduce(x);
                  check(x.at(8) == 10, "got ", x.at(8));
                }),
            "");
}

// Tensors are created and used on the ranks' own streams.
TEST(NcclCommunicator, FollowsTheCurrentStream) {
  EXPECT_EQ(communicator_error(2,
                               [](Communicator& group) {
                                 group.connect_devices(kEmulated);
                                 const StreamGuard guard{Stream(kEmulated)};
                                 Tensor x = full({400}, group.rank() + 1, DType::f32, kEmulated);
                                 for (int i = 0; i < 3; ++i) {
                                   x = x * 2;
                                   group.all_reduce(x, ReduceOp::sum, {.piece_bytes = 128});
                                   x = x + 1;
                                 }
                                 check(x.at(399) == ((3 * 2 + 1) * 4 + 1) * 4 + 1, "got ",
                                       x.at(399));
                               }),
            "");
}

// Buckets are reduced during backward, on a separate thread and streams. The parameters must equal
// those of the CPU.
TEST(NcclCommunicator, TrainsDataParallel) {
  const auto train = [](Communicator& group, Device device) {
    manual_seed(3);
    nn::MLP model({.in = 6, .hidden = {32, 16}, .classes = 4});
    model.to(device);
    model.to(DType::f64);
    DistributedDataParallel ddp(group, model.parameters(), {.bucket_bytes = 2000});
    check(ddp.buckets() > 2, "one bucket");
    for (int step = 0; step < 3; ++step) {
      manual_seed(static_cast<uint64_t>(10 * step + group.rank()));
      const Tensor x = randn({8, 6}).to(DType::f64).to(device),
                   target = full({8}, (step + group.rank()) % 4, DType::i64, device);
      nn::cross_entropy(model(x), target).backward();
      const NoGradGuard guard;
      for (const Parameter& p : model.parameters()) {
        p.value.copy_(p.value.detach() - p.value.grad() * 0.1);
      }
      for (const Parameter& p : model.parameters()) {
        p.value.zero_grad();
      }
    }
    ddp.compare_parameters();
    std::vector<double> values;
    for (const Parameter& p : model.parameters()) {
      const Tensor host = p.value.detach().to(Device{});
      for (int64_t i = 0; i < host.numel(); ++i) {
        values.push_back(host.at(i));
      }
    }
    return values;
  };
  EXPECT_EQ(communicator_error(2,
                               [&](Communicator& group) {
                                 const std::vector<double> expected = train(group, Device{});
                                 group.connect_devices(kEmulated);
                                 const std::vector<double> got = train(group, kEmulated);
                                 check(got.size() == expected.size(), "sizes");
                                 for (size_t i = 0; i < got.size(); ++i) {
                                   check(std::abs(got[i] - expected[i]) < 1e-12, "value ", i,
                                         " is ", got[i], ", expected ", expected[i]);
                                 }
                               }),
            "");
}

// The same training with sharded gradients, reduced during backward.
TEST(NcclCommunicator, TrainsWithShardedGradients) {
  const auto train = [](Communicator& group, Device device) {
    manual_seed(3);
    nn::MLP model({.in = 6, .hidden = {32, 16}, .classes = 4});
    model.to(device);
    model.to(DType::f64);
    model.parameters().shard(group, Sharding::gradients);
    DistributedDataParallel ddp(group, model.parameters(), {.bucket_bytes = 2000});
    check(ddp.buckets() > 2, "one bucket");
    optim::AdamW adam(model.parameters(), {.lr = 0.01});
    for (int step = 0; step < 4; ++step) {
      manual_seed(static_cast<uint64_t>(10 * step + group.rank()));
      const Tensor x = randn({8, 6}).to(DType::f64).to(device),
                   target = full({8}, (step + group.rank()) % 4, DType::i64, device);
      nn::cross_entropy(model(x), target).backward();
      (void)adam.step().value();
      adam.zero_grad();
    }
    ddp.compare_parameters();
    return model.parameters().arena()->segments()[0].values.to(Device{});
  };
  EXPECT_EQ(communicator_error(2,
                               [&](Communicator& group) {
                                 const Tensor expected = train(group, Device{});
                                 group.connect_devices(kEmulated);
                                 const Tensor got = train(group, kEmulated);
                                 for (int64_t i = 0; i < got.numel(); ++i) {
                                   check(std::abs(got.at(i) - expected.at(i)) < 1e-12, "value ", i,
                                         " is ", got.at(i), ", expected ", expected.at(i));
                                 }
                               }),
            "");
}

// Plants a fault in a call of a run of two ranks: each must end with an error in time.
void expect_end(const std::string& kind, int rank, int k, const std::string& folder) {
  const std::string fault = kind + ":" + std::to_string(rank) + ":" + std::to_string(k);
  const ProgramResult result =
      run_program("TMPDIR=" + folder + " FAKE_NCCL_FAULT=" + fault +
                  " BINADE_NCCL_LIBRARY=" BINADE_FAKE_NCCL " timeout -k 5 60 " BINADE_BIN_DIR
                  "/dist_ranks launch 2 " BINADE_BIN_DIR "/dist_ranks nccl");
  const bool waits = kind == "hang" || kind == "progress";  // until the timeout of 1.5 s
  EXPECT_NE(result.status, 0) << fault << "\n" << result.output;
  EXPECT_LT(result.seconds, (waits ? 1.5 : 0) + 5 + (kind == "hang" ? 3 : 0)) << fault << "\n"
                                                                              << result.output;
  EXPECT_NE(result.output.find("could not finish #"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("rank  state"), std::string::npos) << result.output;
}

constexpr const char* kNcclFaults[] = {"error", "hang", "async", "abort", "progress"};

class NcclFaults : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { run_program("mkdir -p " + folder_); }
  void TearDown() override {
    EXPECT_NE(run_program("pgrep -f '[d]ist_ranks nccl'").status, 0);
    run_program("rm -r " + folder_);
  }
  const std::string folder_ = testing::TempDir() + "nccl_test." + std::to_string(::getpid());
};
INSTANTIATE_TEST_SUITE_P(Kinds, NcclFaults, testing::ValuesIn(kNcclFaults));

TEST_P(NcclFaults, EndEveryRank) {
  const std::string kind = GetParam();
  const bool waits = kind == "hang" || kind == "progress";
  const auto calls = waits             ? std::vector<int>{1, 6}
                     : kind == "abort" ? std::vector<int>{3, 9}
                                       : std::vector<int>{1, 2, 3, 5, 8, 9, 10};
  for (const int k : calls) {
    expect_end(kind, 1, k, folder_);
  }
}

// Tests 200 points; runs only in the slow ctest dist_nccl_faults_200.
TEST_P(NcclFaults, EndEveryRankAtEveryCall) {
  if (std::getenv("BINADE_FAULT_POINTS") == nullptr) {
    GTEST_SKIP() << "skipped: slow; run it as dist_nccl_faults_200";
  }
  for (int k = 1; k <= 20; ++k) {
    for (const int rank : {0, 1}) {
      expect_end(GetParam(), rank, k, folder_);
    }
  }
}

TEST(NcclProcesses, ReduceOnTheDevice) {
  const ProgramResult result =
      run_program("BINADE_NCCL_LIBRARY=" BINADE_FAKE_NCCL " timeout -k 5 60 " BINADE_BIN_DIR
                  "/dist_ranks launch 2 " BINADE_BIN_DIR "/dist_ranks nccl");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("2 ranks over nccl"), std::string::npos) << result.output;
}

#endif

}  // namespace
}  // namespace binade::dist::nccl_test
