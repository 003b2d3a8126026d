// Kernels of users: shared objects with the interface of user_kernel.h, which run in the place of
// ours in forward and backward. BINADE_KERNEL=softmax:./my.so,gemm:./other.so in the environment
// names them; it is read by the first call of an operation that can have one. A file that is
// missing, has another version of the interface or none of the functions is an error of that call.
//
// The first calls of each function and dtype are compared with our own kernel, which runs beside;
// a result that differs is an error that names the element. BINADE_KERNEL_CHECK says how many (2;
// 0: none). They are not compared while a CUDA graph is captured.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace binade::kernels {

// softmax, reduce, layer_norm, rms_norm, batch_norm, group_norm, attention, gemm, conv2d.
std::vector<std::string_view> user_kernel_names();

// From now on `path` computes the calls of `kernel`; "" gives them back to Binade. What was loaded
// stays in memory. Throws Error, and changes nothing, for a wrong name or file. Calls that run in
// other threads at this time use one or the other.
void set_user_kernel(std::string_view kernel, const std::string& path);
std::string user_kernel(std::string_view kernel);  // the path, "" if there is none

// How many calls of a function and dtype are compared with ours: of objects that are set later.
void set_user_kernel_checks(int64_t calls);

// How many calls of `kernel` the present object has computed, all its functions together.
int64_t user_kernel_calls(std::string_view kernel);

}  // namespace binade::kernels
