// Copies of tensors in pinned memory, which the host does not wait for: the counterpart of
// upload.h.
#pragma once
#include <binade/core/device/pinned.h>
#include <binade/core/tensor/tensor.h>

namespace binade {

// Memory on the CPU for a tensor of a device. REQUIRES: `memory` outlives all that share the
// tensor's storage.
struct PinnedTensor {
  PinnedBuffer memory;
  Tensor tensor;
};

// With the sizes, strides and dtype of `like` (on a device, dense, not empty). Throws OutOfMemory.
PinnedTensor pinned_like(const Tensor& like);

// Waits for the event and throws the faults that kernels of its device have reported, as
// synchronize_stream() does. Any thread may call it.
void wait_for(const Event& event);

}  // namespace binade
