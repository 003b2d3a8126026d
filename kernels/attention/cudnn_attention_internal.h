// Attention by cuDNN (kernels/attention/attention_provider.h): a graph of products, pointwise
// operations and reductions in the form that the library's fused engines recognise. Keys and values
// are passed transposed where the library expects that. The forward saves the same numbers as our
// kernels: the logarithm of the softmax's denominator.
#pragma once
#include <binade/kernels/attention/attention_internal.h>

#include <functional>
#include <string>

namespace binade::kernels {

// These run the checked problem. They return false and do nothing if the library was not loaded or
// has no plan for the problem; `why` then says why.
bool library_attention(const AttentionForward& a, const AttentionSizes& n, std::string& why);
bool library_attention(const AttentionBackward& a, const AttentionSizes& n, std::string& why);

int64_t library_attention_calls();  // number of calls that returned true, in this process

// Runs a call by the provider that is set; own() runs it by our kernels.
void run_attention(const AttentionForward& a, const AttentionSizes& n,
                   const std::function<void()>& own);
void run_attention(const AttentionBackward& a, const AttentionSizes& n,
                   const std::function<void()>& own);

}  // namespace binade::kernels
