// Kernels of users: shared objects with the interface of user_kernel.h, which replace ours in
// forward and backward. BINADE_KERNEL=softmax:./my.so,gemm:./other.so in the environment names
// them; it is read by the first call of an operation that can have one. A file that is missing, has
// another version of the interface or none of the functions is an error of that call.
//
// The first calls of each function and dtype also run our own kernel and compare the results; a
// difference is an error that names the element. BINADE_KERNEL_CHECK is the number of these calls
// (2; 0: none). Calls are not compared while a CUDA graph is captured.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace binade::kernels {

// softmax, reduce, layer_norm, rms_norm, batch_norm, group_norm, attention, gemm, conv2d.
std::vector<std::string_view> user_kernel_names();

// From now on `path` computes the calls of `kernel`; "" gives them back to Binade. Loaded files
// stay in memory. Throws Error, and changes nothing, for a wrong name or file. Calls that run in
// other threads at this time use either kernel.
void set_user_kernel(std::string_view kernel, const std::string& path);
std::string user_kernel(std::string_view kernel);  // the path, "" if there is none

// Sets how many calls of a function and dtype are compared with ours, for objects set later.
void set_user_kernel_checks(int64_t calls);

// The number of calls of `kernel` that the present object has computed, over all its functions.
int64_t user_kernel_calls(std::string_view kernel);

}  // namespace binade::kernels
