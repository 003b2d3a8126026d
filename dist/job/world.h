// World: all processes of a job, however they were started: mpirun, srun, torchrun, binade launch,
// or a single one.
//
//   dist::World world(argc, argv);
//   world.communicator().all_reduce(x);
//
// A program creates one early in main() and destroys it at its end. If a process of the job dies,
// hangs, leaves early or fails, every other one gets a CollectiveError from its current or next
// collective; a process that has not ended on its own grace_seconds later is ended with status 75.
#pragma once
#include <binade/core/owned.h>
#include <binade/dist/collective/communicator.h>
#include <binade/kernels/base/device.h>

#include <string_view>

namespace binade::dist {

struct WorldOptions {
  // BINADE_TIMEOUT overrides both times, BINADE_LINK_DELAY the link.
  CommunicatorOptions collectives = {};
  // For all processes to join; BINADE_RENDEZVOUS_TIMEOUT, else BINADE_TIMEOUT.
  double rendezvous_seconds = 60;
  double grace_seconds = 3;
};

class World {
 public:
  // Returns when all processes have joined. Throws Error if the environment is contradictory (see
  // dist/job/discovery_internal.h) or not all have joined in time. BINADE_TRANSPORT=tcp|mpi chooses
  // the transport; the default is MPI under mpirun and TCP otherwise. If every process has its own
  // GPU and NCCL is installed, tensors on GPUs use NCCL; BINADE_NCCL=off disables it,
  // BINADE_NCCL=on makes its absence an error. Processes on one machine share its cores, unless
  // OMP_NUM_THREADS is set or the launcher has bound them to cores.
  explicit World(const WorldOptions& options = {});
  World(int argc, char** argv, const WorldOptions& options = {});
  // Rank 0 waits for the others, for at most the timeout of collectives: if one dies or stays, the
  // process ends with status 75. A world destroyed by an exception ends the job.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Communicator& communicator();
  int rank() const;
  int size() const;
  int local_rank() const;  // among the processes of this machine
  int local_size() const;
  bool is_root() const { return rank() == 0; }
  // The device of this process. If a machine has enough GPUs, each of its processes gets its own;
  // the CPU if there is none.
  Device device() const;
  // Collective: see Communicator::split().
  std::unique_ptr<Communicator> split(int color, int key = 0);
  // Prints a line on standard output from rank 0, and from the ranks in BINADE_LOG_RANKS ("all" or
  // "1,3"), these with their rank in front.
  void log(std::string_view line) const;

 private:
  struct State;
  Owned<State> state_;
};

}  // namespace binade::dist
