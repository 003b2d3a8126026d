// The epilogue that Binade applies after a product or a convolution of a user's kernel
// (kernels/base/user_kernel.h).
#pragma once
#include <binade/kernels/gemm/epilogue.h>

namespace binade::kernels {

// Null if apply_user_epilogue() can do the epilogue, else why not.
const char* user_epilogue_refusal(const Epilogue& epilogue);

// y = activation(y? + sums + bias). `sums` is y without accumulate, and else has y's sizes. bias
// has the sizes that broadcast to y, and may be absent.
void apply_user_epilogue(const Epilogue& epilogue, const View& bias, const View& sums,
                         const View& y);

}  // namespace binade::kernels
