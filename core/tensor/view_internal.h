// make_view() in the name of an op. Internal to core.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade::detail {

// An error about the sizes names the op.
Tensor make_view(const char* op, const Tensor& t, const Dims& sizes, const Dims& strides,
                 int64_t offset = 0);

}  // namespace binade::detail
