// Batch scripts for SLURM: what binade slurm submit writes and hands to sbatch.
//
// The script starts one rank per GPU (or --tasks per node) with srun, whose variables World reads
// (dist/job/discovery_internal.h). Some time before the time limit the ranks get SIGINT, to write a
// checkpoint, and the job goes back into the queue under the same number: the program has to resume
// by itself.
#pragma once
#include <string>
#include <vector>

namespace binade::dist {

struct SlurmJob {
  std::vector<std::string> command;  // program and arguments, passed on unchanged
  int nodes = 1;
  int gpus = 0;                // of each node
  int tasks = 0;               // ranks of each node; 0: one per GPU, or one
  int cpus = 0;                // of each rank; 0: what the cluster gives
  std::string name = {};       // empty: the program's
  std::string time = {};       // limit, as sbatch writes it: "30", "2:00:00", "1-12"; empty: none
  std::string partition = {};  // empty: the cluster's default
  std::string array = {};   // "0-9", "1,5,7%2"; "{array}" in an argument becomes the task's number
  std::string output = {};  // empty: NAME-%j.out, of arrays NAME-%A_%a.out
  int requeue_seconds = 120;              // before the time limit; 0: the job ends there
  std::vector<std::string> options = {};  // others of sbatch, "--mem=64G"
};

// Throws Error where a field is out of range or would not stand on a line of its own.
std::string slurm_script(const SlurmJob& job);

// Hands a script to sbatch, which prints the job's number. Returns what sbatch exited with. Throws
// Error where there is no sbatch.
int slurm_submit(const std::string& script);

}  // namespace binade::dist
