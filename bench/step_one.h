// The training step of one model as a program: step_bench --model ..., also in the bundle of
// scripts/gpu-check.
#pragma once

namespace binade::bench {

// Parses the arguments (--help lists them), prints the results and returns the exit status. With
// --serve, the model is set up once; then each line "sample" on stdin times --steps steps and is
// answered with {"milliseconds": ...}. The end of the input prints the object of --json. This lets
// another program time its own work in turn.
int run_step_model(int argc, char** argv);

}  // namespace binade::bench
