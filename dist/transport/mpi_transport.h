// A transport between processes that mpirun (or srun --mpi=pmix) has started.
#pragma once
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// Whether this build has MPI.
bool has_mpi();
// The processes of MPI_COMM_WORLD; MPI is initialised by the first call. Throws Error in a build
// without MPI, and where MPI gives no support for several threads. finish_mpi() ends it, with all
// ranks together; a rank that fails leaves it out, and mpirun ends the others.
std::unique_ptr<Transport> make_mpi_transport();
void finish_mpi();

}  // namespace binade::dist
