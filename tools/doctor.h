// binade doctor: what this build is made of, what the machine has, and which device programs use.
#pragma once

namespace binade {

// Prints the report; the exit code of the program.
int run_doctor();

}  // namespace binade
