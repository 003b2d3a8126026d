// Batch scripts for SLURM, which binade slurm submit writes and passes to sbatch.
//
// The script starts one rank per GPU (or --tasks per node) with srun; World reads srun's variables
// (dist/job/discovery_internal.h). Some time before the time limit the ranks get SIGINT, to write a
// checkpoint, and the job is requeued under the same number. The program must resume by itself.
#pragma once
#include <string>
#include <vector>

namespace binade::dist {

struct SlurmJob {
  std::vector<std::string> command;  // program and arguments, passed on unchanged
  int nodes = 1;
  int gpus = 0;                // per node
  int tasks = 0;               // ranks per node; 0: one per GPU, or one
  int cpus = 0;                // per rank; 0: the cluster's default
  std::string name = {};       // empty: the program's name
  std::string time = {};       // limit, as sbatch writes it: "30", "2:00:00", "1-12"; empty: none
  std::string partition = {};  // empty: the cluster's default
  std::string array = {};   // "0-9", "1,5,7%2"; "{array}" in an argument becomes the task's number
  std::string output = {};  // empty: NAME-%j.out, for arrays NAME-%A_%a.out
  int requeue_seconds = 120;              // before the time limit; 0: the job ends at the limit
  std::vector<std::string> options = {};  // other options of sbatch, "--mem=64G"
};

// Throws Error if a field is out of range or contains a line break.
void check_slurm_job(const SlurmJob& job);

// Throws what check_slurm_job() does.
std::string slurm_script(const SlurmJob& job);

// Passes a script to sbatch, which prints the job's number. Returns sbatch's exit status. Throws
// Error if there is no sbatch.
int slurm_submit(const std::string& script);

}  // namespace binade::dist
