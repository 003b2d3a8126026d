// dist_ranks MODE: what one process of a test does. Tests start it with mpirun or binade launch.
#include <binade/dist/mpi_transport.h>
#include <tests/dist/ring_cases.h>
#include <tests/dist/transport_cases.h>

#include <cstdio>
#include <exception>
#include <string>

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

int run(const std::string& mode) {
  if (mode == "mpi-transport") {
    mpi_transport();
  } else if (mode == "mpi-ring") {
    mpi_ring();
  } else {
    fail("got mode ", mode);
  }
  return 0;
}

}  // namespace
}  // namespace binade::dist

int main(int argc, char** argv) {
  try {
    return binade::dist::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_ranks: error: %s\n", error.what());
    return 1;
  }
}
