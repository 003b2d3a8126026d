// What nvcc reports about the kernels of a file: registers, spills, occupancy and SASS counts.
#pragma once
#include <binade/lab/driver/process_internal.h>
#include <binade/lab/driver/report.h>

#include <memory>

namespace binade::lab {

// Runs nvcc on a file once for each GPU, at low priority beside the lab's builds.
class DeviceCompilers {
 public:
  // Starts nothing if no nvcc is in PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda.
  explicit DeviceCompilers(const std::string& file);
  // Waits for nvcc. Computes the occupancy of these launches.
  DeviceCode results(const std::vector<FoundLaunch>& launches);

 private:
  struct Run;
  std::string nvcc_, file_;
  ScratchFolder scratch_;
  std::vector<std::shared_ptr<Run>> runs_;
};

// Functions that parse the output of the tools. Maps are keyed by the symbols of kernels.
struct KernelResources {
  int registers = 0, spilled_bytes = 0, stack_bytes = 0;
  uint64_t shared_bytes = 0;
};
std::map<std::string, KernelResources> resources_from(const std::string& ptxas);
// Counts instructions by opcode, without NOP, in the output of cuobjdump -sass or nvdisasm.
std::map<std::string, std::map<std::string, uint64_t>> instructions_from(const std::string& sass);
// Turns "void softmax<128>(float const*, float*, int)" into "softmax<128>".
std::string kernel_of_symbol(const std::string& symbol);
// True if a launch, as written in the source, may be a launch of this kernel.
bool is_launch_of(const std::string& launch, const std::string& kernel);

}  // namespace binade::lab
