// Streams: in-order queues of work on a device. A handle is what the CUDA runtime calls
// cudaStream_t; null is the default stream of the device. Kernels take no stream argument: they go
// to the calling thread's current stream of the device their views live on.
#pragma once
#include <binade/kernels/base/device.h>

namespace binade::kernels {

using StreamHandle = void*;

// The calling thread's current stream of a device; null until set.
StreamHandle current_stream(Device device);
void set_current_stream(Device device, StreamHandle stream);

}  // namespace binade::kernels
