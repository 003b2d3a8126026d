// Layer norm, RMS norm and batch norm by cuDNN (kernels/norm/norm_provider.h). Rows of a layer norm
// are images of one pixel; a batch norm is passed channels-last, and packed if it is not. What the
// library does not write (a missing weight, the biased variance) is left to our kernels.
#pragma once
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/layer_norm.h>

#include <functional>
#include <string>

namespace binade::kernels {

// Run the checked problem. They return false and do nothing if the library was not loaded or has no
// plan for the problem; `why` then says why.
bool library_norm(const LayerNormForward& a, std::string& why);
bool library_norm(const LayerNormBackward& a, std::string& why);
bool library_norm(const BatchNormForward& a, std::string& why);
bool library_norm(const BatchNormBackward& a, std::string& why);

int64_t library_norm_calls();  // number of calls that returned true, in this process

// Runs a call as the provider says; own() runs it by our kernels.
void run_norm(const LayerNormForward& a, const std::function<void()>& own);
void run_norm(const LayerNormBackward& a, const std::function<void()>& own);
void run_norm(const BatchNormForward& a, const std::function<void()>& own);
void run_norm(const BatchNormBackward& a, const std::function<void()>& own);

}  // namespace binade::kernels
