// A transport between processes started by mpirun (or srun --mpi=pmix).
#pragma once
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// True if this build has MPI.
bool has_mpi();
// The processes of MPI_COMM_WORLD; the first call initialises MPI. Throws Error in a build without
// MPI, or if MPI does not support several threads. finish_mpi() ends it, on all ranks together; a
// rank that fails does not call it, and mpirun ends the others.
std::unique_ptr<Transport> make_mpi_transport();
void finish_mpi();

}  // namespace binade::dist
