// Layer norm, RMS norm and batch norm by cuDNN (kernels/norm/norm_provider.h). Rows of a layer norm
// are images of one pixel; a batch norm is passed channels-last, and packed if it is not.
//
// The biased variance of a batch norm is what cuDNN makes a running variance of when it forgets the
// one before (a factor of 1), so it keeps the digits that rstd has lost. Its documentation does not
// say whether that is the biased or the unbiased variance. The first such call of a dtype on a
// device asks the library, with numbers of which both are known, and waits for the answer.
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

// variance *= factor, in f32, computed in double.
void scale_variance(const View& variance, double factor);

int64_t library_norm_calls();  // number of calls that returned true, in this process

// Runs a call as the provider says; own() runs it by our kernels.
void run_norm(const LayerNormForward& a, const std::function<void()>& own);
void run_norm(const LayerNormBackward& a, const std::function<void()>& own);
void run_norm(const BatchNormForward& a, const std::function<void()>& own);
void run_norm(const BatchNormBackward& a, const std::function<void()>& own);

}  // namespace binade::kernels
