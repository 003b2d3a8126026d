// What nvcc makes of the kernels of a file: registers, spills, occupancy and SASS instructions.
#pragma once
#include <binade/lab/driver/process_internal.h>
#include <binade/lab/driver/report.h>

#include <memory>

namespace binade::lab {

// nvcc at work on a file, once for each GPU, while the lab's builds come first.
class DeviceCompilers {
 public:
  // Starts nothing if there is no nvcc in PATH, CUDA_HOME or /usr/local/cuda.
  explicit DeviceCompilers(const std::string& file);
  // Waits for them. `launches`: what the occupancy is of.
  DeviceCode results(const std::vector<FoundLaunch>& launches);

 private:
  struct Run;
  std::string nvcc_, file_;
  ScratchFolder scratch_;
  std::vector<std::shared_ptr<Run>> runs_;
};

// The parts that read texts of the tools. Kernels by their symbols.
struct KernelResources {
  int registers = 0, spilled_bytes = 0, stack_bytes = 0;
  uint64_t shared_bytes = 0;
};
std::map<std::string, KernelResources> resources_from(const std::string& ptxas);
// Instructions by the first part of their names, without NOP. Of cuobjdump -sass or nvdisasm.
std::map<std::string, std::map<std::string, uint64_t>> instructions_from(const std::string& sass);
// "softmax<128>" of "void softmax<128>(float const*, float*, int)".
std::string kernel_of_symbol(const std::string& symbol);
// Whether a launch as the source writes it may be of this kernel.
bool is_launch_of(const std::string& launch, const std::string& kernel);

}  // namespace binade::lab
