// Runtime calls for users' kernels (kernels/user/user_kernels.h). REQUIRES: a KernelCall.
#pragma once
#include <cstddef>

namespace binade::kernels {

void* user_call_stream();   // of the call's device
bool user_call_captured();  // true while the stream records a graph
void wait_for_user_stream();
// Copies memory of the device to the host; waits for the stream.
void download_for_user(void* to, const void* from, size_t bytes);

}  // namespace binade::kernels
