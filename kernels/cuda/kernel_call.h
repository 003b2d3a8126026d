// KernelCall: the kernel call in progress on this thread. It selects the device for the launches
// inside, and lets an error name the operation and the operand that failed.
#pragma once
#include <binade/kernels/base/view.h>

namespace binade::kernels {

class KernelCall {
 public:
  // `name` as in BINADE_KERNEL, a literal; `decisive` is the view whose device decides. It must
  // outlive the call.
  KernelCall(const char* name, const View& decisive);
  ~KernelCall();
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  static const KernelCall* current();  // null outside of calls
  const char* name() const { return name_; }
  const View& decisive() const { return *decisive_; }
  Device device() const { return decisive_->device; }

 private:
  const char* name_;
  const View* decisive_;
  const KernelCall* outer_;
};

// A call of the CUDA runtime that failed, or a launch that was refused.
class CudaError : public Error {
 public:
  CudaError(const std::string& text, int code) : Error(text), code_(code) {}
  int code() const { return code_; }  // cudaError_t

 private:
  int code_;
};

// Throws the typed error for a cudaError_t that is not cudaSuccess (OutOfMemory for 2). The error
// names the runtime call or kernel launch, the operation and its decisive operand, the device, and
// what to do. `details` describes the launch.
[[noreturn]] void throw_cuda_error(int code, const char* what, const std::string& details = "");
inline void check_cuda(int code, const char* what) {
  if (code != 0) [[unlikely]] {
    throw_cuda_error(code, what);
  }
}

// For tests that revive a dead device (kernels/host/queue.h): later errors then do not name the
// first fault.
void forget_first_fault();

// Makes `device` current for runtime calls of this thread. If it already is, this costs a
// comparison.
void select_device(Device device);
int selected_device();

// The number of GPUs (or emulated devices), or 0 and the reason. Asks the driver once.
struct DeviceCount {
  int count = 0;
  std::string reason;
};
const DeviceCount& cuda_devices();

}  // namespace binade::kernels
