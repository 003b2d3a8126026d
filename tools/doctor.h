// binade doctor: what this build is made of, what the machine has, and which device programs use.
#pragma once

namespace binade {

// Prints the report and returns the exit status.
int run_doctor();

}  // namespace binade
