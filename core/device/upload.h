// Copies tensors to a device ahead of use.
#pragma once
#include <binade/core/device/pinned.h>
#include <binade/core/tensor/tensor.h>

namespace binade {

// A copy of `host` (on the CPU, dense) on the uploader's device, queued on its copy stream from
// pinned memory: `host` may change as soon as this returns. Call uploader.ready() before using it.
Tensor upload(Uploader& uploader, const Tensor& host);

}  // namespace binade
