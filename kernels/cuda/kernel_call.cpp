#include <binade/kernels/cuda/kernel_call.h>

namespace binade::kernels {
namespace {

constinit thread_local const KernelCall* current_call = nullptr;

}  // namespace

KernelCall::KernelCall(const char* name, const View& decisive)
    : name_(name), decisive_(&decisive), outer_(current_call) {
  current_call = this;
}
KernelCall::~KernelCall() { current_call = outer_; }
const KernelCall* KernelCall::current() { return current_call; }

void throw_cuda_error(int code, const char* what, const std::string& details) {
  throw CudaError(text(what, ": CUDA error ", code, details), code);
}

}  // namespace binade::kernels
