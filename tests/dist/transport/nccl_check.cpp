// nccl_check [cuda|emulated] runs the ring, ncclAllReduce and data parallel training between ranks
// started by binade launch. They share one GPU if there is no other, which NCCL allows if each rank
// claims to be a separate host. Rank 0 prints a line of JSON. If NCCL does not start, the exit
// status is 77, with a line "nccl_check: skipped: ...".
#include <binade/core/device/stream.h>
#include <binade/core/ops.h>
#include <binade/dist/job/world.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/dist/transport/nccl_transport.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <binade/optim/sgd.h>
#include <tests/dist/collective/ring_cases.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace binade::dist {
namespace {

constexpr int kSkipped = 77;

int exact_sums(Communicator& group, Device device) {
  int checks = 0;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::library}) {
    for (const DType dtype : kReducedDTypes) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
        for (const int64_t size : {int64_t(1), int64_t(1003), int64_t(300'000)}) {
          if (device.kind == Device::kEmulated && size > 1003) {
            continue;
          }
          const Tensor x = rank_values(size, group.rank(), group.size(), dtype).to(device);
          group.all_reduce(x, op, {.algorithm = algorithm});
          check_values(x, 0, group.size(), op,
                       text(algorithm == Algorithm::ring ? "ring " : "library ", dtype, " ",
                            to_string(op), " ", size));
          ++checks;
        }
      }
    }
  }
  return checks;
}

// Compares ten steps on a share of each batch with the whole batch on this rank alone; returns the
// largest difference of a parameter.
double train(Communicator& group, Device device) {
  constexpr int64_t kShare = 8;
  const auto make = [&](nn::MLP& model) { model.to(device, Precision::full()); };
  manual_seed(3);
  nn::MLP together({.in = 12, .hidden = {64}, .classes = 5});
  manual_seed(3);
  nn::MLP alone({.in = 12, .hidden = {64}, .classes = 5});
  make(together);
  make(alone);
  DistributedDataParallel ddp(group, together.parameters(), {.bucket_bytes = 2000});
  optim::SGD first(together.parameters(), {.lr = 0.05}), second(alone.parameters(), {.lr = 0.05});
  for (int step = 0; step < 10; ++step) {
    group.set_step(step);
    manual_seed(static_cast<uint64_t>(step));
    const int64_t all = kShare * group.size(), begin = kShare * group.rank();
    const Tensor x = randn({all, 12}), target = empty({all}, DType::i64);
    for (int64_t i = 0; i < all; ++i) {
      target.data<int64_t>()[i] = (i + step) % 5;
    }
    const auto part = [&](const Tensor& t) {
      return slice(t, 0, begin, begin + kShare).contiguous().to(device);
    };
    nn::cross_entropy(together(part(x)), part(target)).backward();
    nn::cross_entropy(alone(x.to(device)), target.to(device)).backward();
    for (optim::SGD* sgd : {&first, &second}) {
      check(sgd->step() == optim::StepOutcome::applied, "the step was skipped");
      sgd->zero_grad();
    }
  }
  ddp.compare_parameters();
  double largest = 0;
  const ParameterList a = together.parameters(), b = alone.parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor u = a[i].value.detach().to(Device{}), v = b[i].value.detach().to(Device{});
    for (int64_t k = 0; k < u.numel(); ++k) {
      largest = std::max(largest, std::abs(u.at(k) - v.at(k)));
    }
  }
  check(largest < 1e-5, "parameters differ by ", largest, " from one rank with the whole batch");
  return largest;
}

double median_milliseconds(Communicator& group, Device device, Algorithm algorithm, int64_t count) {
  const Tensor x = full({count}, 1, DType::f32, device);
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    group.barrier();
    const auto start = std::chrono::steady_clock::now();
    group.all_reduce(x, ReduceOp::avg, {.algorithm = algorithm, .piece_bytes = int64_t(1) << 22});
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin() + 1, times.end());  // the first is a warm-up
  return times[4];
}

int run(const std::string& name) {
  const char* rank = std::getenv("BINADE_RANK");
  ::setenv("NCCL_HOSTID", (std::string("binade-") + (rank ? rank : "0")).c_str(), 0);
  ::setenv("BINADE_NCCL", "off", 1);  // it is connected below, where a failure can be reported
  const Device device = Device::parse(name);
  World world({.collectives = {.timeout = 60, .first_timeout = 60}});
  Communicator& group = world.communicator();
  if (!nccl_missing().empty()) {
    world.log("nccl_check: skipped: " + nccl_missing());
    return kSkipped;
  }
  try {
    group.connect_devices(device);
  } catch (const Error& error) {
    const std::string reason = error.what();
    std::printf("nccl_check: skipped: %s\n", reason.substr(0, reason.find('\n')).c_str());
    std::fflush(stdout);
    throw;
  }
  const int checks = exact_sums(group, device);
  const double difference = train(group, device);
  std::string line = text("{\"ranks\": ", world.size(), ", \"sums\": ", checks,
                          ", \"largest_difference\": ", difference);
  for (const int64_t kib : {4, 1024, 16384}) {
    if (device.kind == Device::kEmulated && kib > 4) {
      continue;
    }
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::library}) {
      const double ms = median_milliseconds(group, device, algorithm, kib << 8);
      line += text(", \"", algorithm == Algorithm::ring ? "ring" : "library", "_", kib,
                   "_kib_ms\": ", std::round(ms * 1000) / 1000);
    }
  }
  world.log(line + "}");
  return 0;
}

}  // namespace
}  // namespace binade::dist

int main(int argc, char** argv) {
  try {
    return binade::dist::run(argc > 1 ? argv[1] : "cuda");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nccl_check: error: %s\n", error.what());
    return 1;
  }
}
