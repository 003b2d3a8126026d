// dist_ranks MODE [RANK [STEP]]: the program of one process in a test. Tests start it with mpirun,
// or with dist_ranks launch N.
#include <binade/dist/job/launch.h>
#include <binade/dist/job/world.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/dist/transport/mpi_transport.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <tests/dist/collective/ring_cases.h>
#include <tests/dist/transport/transport_cases.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <thread>

namespace binade::dist {
namespace {

void mpi_transport() {
  {
    const auto transport = make_mpi_transport();
    pass_on(*transport);
    keep_order(*transport);
    split_in_two(*transport);
    if (transport->rank() == 0) {
      std::printf("%d ranks over %s\n", transport->size(), transport->name());
    }
  }
  finish_mpi();
}

void mpi_ring() {
  {
    const auto transport = make_mpi_transport();
    Transport& t = *transport;
    exact_collectives(t, {0, 1, 1003}, {});
    exact_collectives(t, {300}, {.f32_carry = true, .piece_bytes = 64});
    gather_and_broadcast(t, {0, 1, 1003}, {.piece_bytes = 100});
    same_bits(t, 10'007, {.piece_bytes = 4096});
    const Tensor x = rank_values(2'500'001, t.rank(), t.size(), DType::f32);
    ring_all_reduce(t, x, ReduceOp::avg);
    check_values(x, 0, t.size(), ReduceOp::avg, "large");
    if (t.rank() == 0) {
      std::puts("the ring is right");
    }
  }
  finish_mpi();
}

// Runs collectives in a world, however it was started.
void world_collectives() {
  World world;
  Communicator& all = world.communicator();
  const int n = world.size();
  for (const DType dtype : kReducedDTypes) {
    const Tensor x = rank_values(1003, world.rank(), n, dtype);
    all.all_reduce(x, ReduceOp::avg);
    check_values(x, 0, n, ReduceOp::avg, "all_reduce");
  }
  if (all.transport().name() == std::string("mpi")) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
      for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
        const Tensor x = rank_values(1003, world.rank(), n, dtype);
        all.all_reduce(x, op, {.algorithm = Algorithm::library});
        check_values(x, 0, n, op, "library");
      }
    }
  }
  const auto half = world.split(world.rank() % 2);
  const Tensor y = full({1}, 1);
  half->all_reduce(y);
  check(y.item() == half->size(), "the half counts ", y.item());
  all.barrier();
  world.log(text(n, " ranks over ", all.transport().name()));
}

// Runs collectives of tensors on the emulated device.
void nccl() {
  const Device device = Device::parse("emulated");
  World world({.collectives = {.timeout = 1.5, .first_timeout = 20}});
  Communicator& all = world.communicator();
  all.barrier();
  all.connect_devices(device);
  for (int step = 0; step < 3; ++step) {
    all.set_step(step);
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::library}) {
      const Tensor x = rank_values(1003, world.rank(), world.size(), DType::f32).to(device);
      all.all_reduce(x, ReduceOp::avg, {.algorithm = algorithm});
      check_values(x, 0, world.size(), ReduceOp::avg, "all_reduce");
    }
  }
  world.log(text(world.size(), " ranks over nccl"));
}

// Trains some data parallel steps and makes new groups meanwhile; returns a checksum of the
// parameters.
uint32_t trained(World& world, int steps) {
  manual_seed(3);
  nn::MLP model({.in = 6, .hidden = {32, 16}, .classes = 4});
  DistributedDataParallel ddp(world.communicator(), model.parameters(),
                              {.bucket_bytes = 1000, .check_every = 5});
  optim::AdamW adam(model.parameters(), {.lr = 0.01});
  for (int step = 0; step < steps; ++step) {
    world.communicator().set_step(step);
    manual_seed(static_cast<uint64_t>(1000 * step + world.rank()));
    const Tensor labels = full({8}, (step + world.rank()) % 4, DType::i64);
    nn::cross_entropy(model(randn({8, 6})), labels).backward();
    check(adam.step() == optim::StepOutcome::applied, "the step was skipped");
    adam.zero_grad();
    if (step % 100 == 50) {
      world.split(world.rank() % 2)->barrier();
    }
  }
  ddp.compare_parameters();
  const Tensor& values = model.parameters().arena()->segments()[0].values;
  return crc32c(std::span(values.view().data, static_cast<size_t>(values.numel()) * 4));
}

void train() {
  World world;
  world.log(text("trained to ", trained(world, 30)));
}

// Trains for longer and prints the time, for tests that disturb it.
void work(int steps) {
  World world;
  const auto start = std::chrono::steady_clock::now();
  const uint32_t checksum = trained(world, steps);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  world.log(text("trained to ", checksum, " in ", seconds.count(), " s"));
}

// Fails in the way that `how` names. Returns for "return" and "mismatch".
void misbehave(const std::string& how) {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  std::fprintf(stderr, "the fault is at %.3f s\n", now.count());
  const std::map<std::string, int> signals = {
      {"kill", SIGKILL}, {"stop", SIGSTOP}, {"segv", SIGSEGV}, {"abort", SIGABRT}};
  if (const auto found = signals.find(how); found != signals.end()) {
    ::raise(found->second);
  } else if (how == "exit" || how == "exit1") {
    std::exit(how == "exit1");
  } else if (how == "throw") {
    fail("this rank has had enough");
  } else if (how == "uncaught") {
    std::thread([] { fail("nobody catches this"); }).join();
  } else if (how == "loop") {
    for (std::atomic<int> i = 0;; ++i) {
    }
  } else if (how == "read") {
    int ends[2] = {-1, -1};
    char byte = 0;
    check(::pipe(ends) == 0 && ::read(ends[0], &byte, 1) > 0, "nobody writes");
  }
}

int rank_by_launcher() {
  const char* rank = std::getenv("BINADE_RANK");
  rank = rank ? rank : std::getenv("OMPI_COMM_WORLD_RANK");
  return rank ? std::atoi(rank) : -1;
}

// Repeats collectives; in step `when`, rank `victim` fails as `fault` says: HOW, or HOW@PLACE
// (init, joined, broadcast, barrier, save, shutdown; without a place, all_reduce).
void fail_on_purpose(const std::string& fault, int victim, int when) {
  const size_t at = fault.find('@');
  const std::string how = fault.substr(0, at),
                    place = at == fault.npos ? "all_reduce" : fault.substr(at + 1);
  const auto fails_at = [&](const char* here, int step) {
    const bool now = place == here && step == when && rank_by_launcher() == victim;
    if (now) {
      misbehave(how);
    }
    return now;
  };
  fails_at("init", when);
  const double first = place == "joined" ? 1.5 : 20;
  World world({.collectives = {.timeout = 1.5, .first_timeout = first}, .rendezvous_seconds = 2});
  fails_at("joined", when);
  const Tensor x = full({1000}, 1);
  for (int step = 0; step < 1000; ++step) {
    world.communicator().set_step(step);
    if (place == "shutdown" && step == when) {
      break;
    }
    if (fails_at("all_reduce", step)) {
      if (how == "return") {
        return;
      }
      world.communicator().barrier();  // the mismatch
    }
    world.communicator().all_reduce(x, ReduceOp::avg);
    fails_at("broadcast", step);
    world.communicator().broadcast(x, step % world.size());
    fails_at("save", step);  // the other ranks wait for the writer
    fails_at("barrier", step);
    world.communicator().barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  fails_at("shutdown", when);
}

int run(const std::string& mode, int victim, int step) {
  if (mode == "mpi-transport") {
    mpi_transport();
  } else if (mode == "mpi-ring") {
    mpi_ring();
  } else if (mode == "train") {
    train();
  } else if (mode == "work") {
    work(victim);
  } else if (mode == "nccl") {
    nccl();
  } else if (mode == "world") {
    world_collectives();
  } else {
    fail_on_purpose(mode, victim, step);
  }
  return 0;
}

}  // namespace
}  // namespace binade::dist

int main(int argc, char** argv) {
  try {
    if (argc > 3 && argv[1] == std::string("launch")) {  // like binade launch -n N program ...
      return binade::dist::launch({argv + 3, argv + argc}, {.ranks = std::atoi(argv[2])});
    }
    return binade::dist::run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0,
                             argc > 3 ? std::atoi(argv[3]) : 20);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_ranks: error: %s\n", error.what());
    return 1;
  }
}
