// all_reduce_bench compares Binade's ring with MPI_Allreduce in the same processes, in turn. Start
// it with mpirun -np 2. It prints the median times, and the ring's bandwidth as a share of the
// library's.
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/ring.h>
#include <binade/dist/transport/mpi_transport.h>
#include <binade/kernels/base/parallel.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace binade::dist {
namespace {

template <class F>
double seconds(F&& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  f();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}
double median(const std::vector<double>& values) { return quantile(values, 0.5); }

void run(int64_t piece_bytes, int repeats) {
  const auto transport = make_mpi_transport();
  kernels::set_threads(1);  // one thread per process
  if (transport->rank() == 0) {
    std::printf("%8s  %12s  %12s  %s\n", "MiB f32", "ring ms", "MPI ms", "MPI time / ring time");
  }
  for (const int64_t mebibytes : {1, 4, 16, 64}) {
    const int64_t count = mebibytes << 18;
    const Tensor x = full({count}, 1), y = full({count}, 1);
    std::vector<double> ring, library;
    for (int i = 0; i < repeats + 2; ++i) {
      const double a = seconds(
          [&] { ring_all_reduce(*transport, x, ReduceOp::sum, {.piece_bytes = piece_bytes}); });
      const double b = seconds([&] {
        MPI_Allreduce(MPI_IN_PLACE, y.data<float>(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      });
      if (i >= 2) {
        ring.push_back(a);
        library.push_back(b);
      }
    }
    if (transport->rank() == 0) {
      std::printf("%8lld  %12.3f  %12.3f  %.2f\n", static_cast<long long>(mebibytes),
                  median(ring) * 1e3, median(library) * 1e3, median(library) / median(ring));
      std::printf("%8s  %12.3f  %12.3f  of the fastest tenth\n", "", quantile(ring, 0.1) * 1e3,
                  quantile(library, 0.1) * 1e3);
    }
  }
}

}  // namespace
}  // namespace binade::dist

int main(int argc, char** argv) {
  try {
    binade::dist::run(
        argc > 1 ? std::atoll(argv[1]) << 10 : binade::dist::RingOptions{}.piece_bytes,
        argc > 2 ? std::atoi(argv[2]) : 21);
    binade::dist::finish_mpi();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "all_reduce_bench: error: %s\n", error.what());
    return 1;
  }
}
