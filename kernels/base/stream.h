// Streams: in-order queues of work on a device. A handle is a cudaStream_t of the CUDA runtime;
// null is the default stream of the device. Kernels take no stream argument: they run on the
// calling thread's current stream of the device that holds their views.
#pragma once
#include <binade/kernels/base/device.h>

namespace binade::kernels {

using StreamHandle = void*;

// The calling thread's current stream of a device; null until set.
StreamHandle current_stream(Device device);
void set_current_stream(Device device, StreamHandle stream);

}  // namespace binade::kernels
