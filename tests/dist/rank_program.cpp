// dist_ranks MODE: what one process of a test does. Tests start it with mpirun or binade launch.
#include <binade/dist/mpi_transport.h>
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

int run(const std::string& mode) {
  if (mode == "mpi-transport") {
    mpi_transport();
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
