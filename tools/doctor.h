// binade doctor: what this build is made of, what the machine has, and which device programs use.
// binade doctor --security: what listens, and who may read or change what.
#pragma once
#include <string>

namespace binade {

// Prints the report and returns the exit status.
int run_doctor();
// The same; 1 if something is not safe. `run_directory` may be empty.
int run_security_doctor(const std::string& run_directory);

}  // namespace binade
