// Finds out which rank this process is, from the environment variables of its launcher.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace binade::dist {

enum class Launcher { none, binade, torchrun, open_mpi, slurm };

constexpr const char* to_string(Launcher launcher) {
  constexpr const char* kName[] = {"none", "binade launch", "torchrun", "mpirun", "srun"};
  return kName[static_cast<int>(launcher)];
}

struct ProcessInfo {
  Launcher launcher = Launcher::none;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the processes of this machine
  // Where rank 0 waits for the others; empty under mpirun, where ranks exchange it by MPI.
  std::string address = {};
  int port = 0;
  // The job's name at its launcher, to tell it from other jobs. It is no secret.
  std::string job = {};
  // BINADE_LISTEN: the interface or address of this machine at which to listen. Empty: rank 0 takes
  // the address where others look for it, other ranks their end of the connection to rank 0.
  std::string listen = {};
};

using Environment = std::function<const char*(const char* name)>;

// Reads the variables of the launcher:
//  - binade launch: BINADE_RANK, BINADE_WORLD_SIZE, BINADE_LOCAL_RANK, BINADE_LOCAL_SIZE,
//    BINADE_ADDRESS, BINADE_PORT.
//  - torchrun: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; the next
//    port if torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE).
//  - mpirun: OMPI_COMM_WORLD_*.
//  - srun: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE, SLURM_NODEID; rank
//    0 is on the first host of SLURM_STEP_NODELIST, at a port computed from the job's number. A
//    batch script itself (no srun) is a world of one.
// If torchrun or srun says that all ranks are on one machine, they meet on its loopback interface.
// BINADE_ADDRESS, BINADE_PORT and BINADE_LISTEN override all of these; the secret is a matter of
// dist/job/network_policy_internal.h. Throws Error if variables are missing, are no numbers or
// contradict each other.
ProcessInfo discover(const Environment& environment);
ProcessInfo discover();  // from this process's environment

// Expands "n[001-003,7],gpu1" to n001, n002, n003, n7, gpu1. Throws Error for anything that is no
// such list or has more than 2^20 hosts.
std::vector<std::string> slurm_hosts(std::string_view list);
// Expands "4(x2),3" to 4, 4, 3: tasks on each node.
std::vector<int> slurm_tasks_per_node(std::string_view text);

}  // namespace binade::dist
