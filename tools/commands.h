// What the commands of the tool do. Each run() prints its result and returns the exit status.
#pragma once
#include "command_line.h"

namespace binade::tool {

int run(const DoctorOptions& options);
int run_security_doctor(const std::string& run_directory);  // 1 if something is not safe
int run(const LensOptions& options);
int run(const ReplayOptions& options);
int run(const BlackBoxOptions& options);
int run(const LaunchOptions& options);
int run(const SlurmSubmitOptions& options);
int run(const RingLensOptions& options);
int run(const ChecksumOptions& options);
int run(const InspectOptions& options);

}  // namespace binade::tool
