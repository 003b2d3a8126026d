// The commands of the tool. Each run() prints its result and returns the exit status.
#pragma once
#include "command_line.h"

#include <binade/train/profile/trace.h>

namespace binade::tool {

int run(const DoctorOptions& options);
int run_security_doctor(const std::string& run_directory);  // 1 if something is unsafe
int run(const LensOptions& options);
int run(const ReplayOptions& options);
int run(const BlackBoxOptions& options);
int run(const LaunchOptions& options);
int run(const SlurmSubmitOptions& options);
int run(const RingLensOptions& options);
int run(const ChecksumOptions& options);
int run(const PackOptions& options);
int run(const InspectOptions& options);
int run(const ReportOptions& options);
int run(const DiffOptions& options);  // 1 if the runs differ
int run(const RunsOptions& options);
int run(const WatchOptions& options);
int run(const TraceOptions& options);
int run(const BottleneckOptions& options);
int run(const BenchOptions& options);  // diff: 1 if a case changed

// Prints the text of a file line by line, with control characters escaped.
void print_lines(const std::string& lines);

int run(const DecodeOptions& options);
int run(const KernelOptions& options);         // 1 if the kernel is wrong, 2 if it was not checked
int run(const VerifyDatasetOptions& options);  // 1 if the data are not clean
int run(const FormatOptions& options);

}  // namespace binade::tool
