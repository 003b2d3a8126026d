// RMS norm, batch norm and the backward of layer norm by cuDNN (kernels/norm/norm_provider.h). Rows
// are passed as images of one pixel; a batch norm is passed channels-last, and packed if it is not.
//
// A batch norm gets its variance from cuDNN's running variance with a factor of 1, because rstd has
// lost digits. The documentation does not say whether that variance is biased or unbiased. The
// first such call of a dtype on a device finds out with known numbers, and waits for the answer.
// device asks the library, with numbers of which both are known, and waits for the answer.
#pragma once
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/layer_norm.h>

#include <functional>
#include <string>

namespace binade::kernels {

// These run the checked problem. They return false and do nothing if the library was not loaded or
// has no plan for the problem; `why` then says why.
bool library_norm(const LayerNormForward& a, std::string& why);
bool library_norm(const LayerNormBackward& a, std::string& why);
bool library_norm(const BatchNormForward& a, std::string& why);
bool library_norm(const BatchNormBackward& a, std::string& why);

// Computes variance *= factor on f32, in double.
void scale_variance(const View& variance, double factor);

int64_t library_norm_calls();  // number of calls that returned true, in this process

// Runs a call by the provider that is set; own() runs it by our kernels.
void run_norm(const LayerNormForward& a, const std::function<void()>& own);
void run_norm(const LayerNormBackward& a, const std::function<void()>& own);
void run_norm(const BatchNormForward& a, const std::function<void()>& own);
void run_norm(const BatchNormBackward& a, const std::function<void()>& own);

}  // namespace binade::kernels
