#!/bin/bash
# Written by binade slurm submit.
#SBATCH --job-name=study
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --time=1-12:00:00
#SBATCH --partition=gpu,long
#SBATCH --array=0-9%2
#SBATCH --output=study-%A_%a.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@90
#SBATCH --mem=64G

# 90 s before the time limit: the ranks get SIGINT and have 45 s to write a checkpoint;
# then the job goes back into the queue.
back_into_queue() {
  trap '' USR1
  echo "binade: the time limit is near: job $job goes back into the queue"
  scancel --signal=INT "$SLURM_JOB_ID"
  for ((i = 0; i < 45; ++i)); do
    kill -0 "${ranks:-$!}" 2>/dev/null || break
    sleep 1
  done
  scontrol requeue "$job"
  exit
}
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
trap back_into_queue USR1

srun --kill-on-bad-exit=1 '/opt/my programs/train' '--run' 'runs/'"$SLURM_ARRAY_TASK_ID"'' '--note' 'it'\''s $HOME `x` "y" \ *' '' &
ranks=$!
wait "$ranks"
