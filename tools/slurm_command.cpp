// binade slurm submit: a distributed program as a batch job.
#include "commands.h"

#include <binade/dist/job/slurm_submit.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace binade {

void add_slurm(CLI::App& app, const Tail& tail, int& result) {
  auto* slurm = app.add_subcommand("slurm", "a distributed program under SLURM");
  slurm->require_subcommand(1);
  auto* submit = slurm->add_subcommand(
      "submit", "write a batch script and submit it: binade slurm submit --nodes 2 -- program ...");
  const auto job = std::make_shared<dist::SlurmJob>();
  const auto dry_run = std::make_shared<bool>(false);
  submit->add_option("--nodes", job->nodes)->capture_default_str();
  submit->add_option("--gpus", job->gpus, "of each node")->capture_default_str();
  submit->add_option("--tasks", job->tasks, "ranks of each node; 0: one per GPU, or one")
      ->capture_default_str();
  submit->add_option("--cpus", job->cpus, "of each rank; 0: what the cluster gives")
      ->capture_default_str();
  submit->add_option("--name", job->name, "of the job");
  submit->add_option("--time", job->time, "limit: 30 (minutes), 2:00:00, 1-12");
  submit->add_option("--partition", job->partition);
  submit->add_option("--array", job->array, "0-9%2; {array} in an argument is the task's number");
  submit->add_option("--output", job->output, "file of what the ranks print");
  submit
      ->add_option("--requeue", job->requeue_seconds,
                   "seconds before the limit at which the job goes back into the queue; 0: never")
      ->capture_default_str();
  submit->add_option("--sbatch", job->options, "another option of sbatch: --sbatch=--mem=64G")
      ->allow_extra_args(false);
  submit->add_flag("--dry-run", *dry_run, "print the script");
  submit->prefix_command();  // the rest is the program's
  submit->callback([submit, job, dry_run, &tail, &result] {
    job->command = program_of(submit->remaining(), tail);
    const std::string script = dist::slurm_script(*job);
    if (*dry_run) {
      std::fputs(script.c_str(), stdout);
    } else {
      result = dist::slurm_submit(script);
    }
  });
}

}  // namespace binade
