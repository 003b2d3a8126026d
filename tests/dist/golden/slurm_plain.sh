#!/bin/bash
# Written by binade slurm submit.
#SBATCH --job-name=train_classifier
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --output=train_classifier-%j.out

srun --kill-on-bad-exit=1 './train_classifier'
