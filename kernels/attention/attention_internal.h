// The sizes of an attention call; checked_sizes() throws if the arguments do not fit each other.
#pragma once
#include <binade/kernels/attention/attention.h>

namespace binade::kernels {

struct AttentionSizes {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
};

AttentionSizes checked_sizes(const AttentionForward& a);
AttentionSizes checked_sizes(const AttentionBackward& a);

}  // namespace binade::kernels
