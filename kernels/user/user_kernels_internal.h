// How a family passes a call to a user's kernel (run_by_user of provided_kernel.h).
#pragma once
#include <binade/kernels/base/provided_kernel.h>
#include <binade/kernels/base/user_kernel.h>

#include <functional>
#include <span>
#include <string>

namespace binade::kernels {

// The functions of user_kernel.h, in the order of the table in user_kernels.cpp.
enum class UserFunction : uint8_t {
  softmax_forward,
  softmax_backward,
  reduce_forward,
  layer_norm_forward,
  layer_norm_backward,
  rms_norm_forward,
  rms_norm_backward,
  batch_norm_forward,
  batch_norm_backward,
  group_norm_forward,
  group_norm_backward,
  attention_forward,
  attention_backward,
  gemm,
  conv2d_forward,
  conv2d_backward_data,
  conv2d_backward_weight,
};
inline constexpr int kUserFunctions = 17;

// False if no user's kernel would compute the function on this device, and inside of a comparison.
// The first call reads the environment and throws an Error if it is wrong.
bool has_user_function(UserFunction function, Device device);

// The same for callers that do not go through run_by_user, such as fused products.
bool user_computes(UserFunction function, Device device);

// While it lives, this thread's calls run Binade's own kernels.
class OwnKernels {
 public:
  OwnKernels();
  ~OwnKernels();
  OwnKernels(const OwnKernels&) = delete;
  OwnKernels& operator=(const OwnKernels&) = delete;

 private:
  const bool outer_;
};

binade_tensor user_tensor(const View& view);  // with data 0 if it is absent
// Row-major of these sizes; REQUIRES that view is row-major.
binade_tensor user_tensor(const View& view, const Dims& sizes);

struct UserCall {
  UserFunction function;
  const View& decisive;  // determines the device and dtype of the call
  // Why the interface cannot express the call; null if it can. Ours runs, and one line says so.
  const char* refused = nullptr;
  std::span<const View* const> outputs;  // views that are absent are left out of the comparison
  // Runs our own kernel with these views instead of `outputs`, for the comparison.
  std::function<void(std::span<const View> outputs)> own;
};

// True if the user's kernel computed the call; else nothing was written. Throws if the kernel
// failed or its result is wrong. REQUIRES: has_user_function.
bool run_user_function(const UserCall& call, const void* arguments);

template <class Arguments>
bool run_user(const UserCall& call, const Arguments& arguments) {
  return run_user_function(call, &arguments);
}

// The result of a comparison. The tolerance depends on the largest value and on `precision`, the
// dtype of the arithmetic. On a device REQUIRES a KernelCall.
struct UserDifference {
  bool found = false;
  int64_t count = 0, index = 0;  // wrong elements; the first, row-major
  double got = 0, expected = 0;
};
UserDifference compare_with_own(const View& got, const View& expected, DType precision);

}  // namespace binade::kernels
