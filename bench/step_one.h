// The training step of one model as a program: step_bench --model ..., also in the bundle of
// scripts/gpu-check.
#pragma once

namespace binade::bench {

// Parses the arguments (--help lists them), prints the figures and returns the exit status.
// With --serve the model is set up once, then each line "sample" of the standard input times
// --steps steps and is answered with {"milliseconds": ...}; the end of the input ends it with the
// object that --json prints. So another program can time its own work in turn.
int run_step_model(int argc, char** argv);

}  // namespace binade::bench
