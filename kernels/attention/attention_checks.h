// Argument checks of attention, the same on every device.
#pragma once
#include <binade/kernels/attention/attention.h>

namespace binade::kernels {

struct AttentionSizes {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
};

AttentionSizes check_arguments(const AttentionForward& a);
AttentionSizes check_arguments(const AttentionBackward& a);

}  // namespace binade::kernels
