// conv2d by cuDNN, the second provider beside our kernels (kernels/conv/conv2d_provider.h). The
// library is loaded at run time; in host execution BINADE_CUDNN_LIBRARY may name a stand-in.
//
// Operands are passed as they are if both activations are dense and row-major (NCHW), or both
// channels-last (NHWC); others are packed to channels-last first. The weight takes the same order.
// Bias and relu are part of the graph. If no engine keeps NaN through its relu, the library
// computes the rest and our relu follows.
#pragma once
#include <binade/kernels/conv/conv2d_internal.h>

#include <string>

namespace binade::kernels {

// These run the checked problem. They return false and do nothing if the library was not loaded or
// has no plan for the problem; `why` then says why.
bool library_conv2d(const Conv2dForward& a, const Conv2dSizes& size, std::string& why);
bool library_conv2d(const Conv2dBackwardData& a, const Conv2dSizes& size, std::string& why);
bool library_conv2d(const Conv2dBackwardWeight& a, const Conv2dSizes& size, std::string& why);

int64_t library_conv2d_calls();  // number of calls that returned true, in this process

}  // namespace binade::kernels
