// Kernels on raw pointers: no Tensor, no autograd. A view says where the memory is and how it is
// laid out; kernels run on the calling thread's current stream (kernels/base/stream.h).
#include <binade/core/device/device_info.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/softmax/softmax.h>

#include <cstdio>

using namespace binade;

// Memory of this device; a pointer from cudaMalloc works as well.
View on(Device device, const kernels::Workspace& memory, DType dtype, const Dims& sizes) {
  View view = view_of(memory.as<void>(), dtype, sizes);
  view.device = device;
  return view;
}

int main() {
  constexpr int64_t kRows = 64, kInner = 32, kCols = 10;
  const Device device = Device::best();  // the GPU if there is one
  const kernels::Workspace a_memory(kRows * kInner * 2, device),
      b_memory(kInner * kCols * 2, device), y_memory(kRows * kCols * 2, device);
  const View a = on(device, a_memory, DType::f16, {kRows, kInner});
  const View b = on(device, b_memory, DType::f16, {kInner, kCols});
  const View y = on(device, y_memory, DType::f16, {kRows, kCols});

  kernels::fill({.y = a, .value = 0.5});
  kernels::fill({.y = b, .value = 0.25});
  kernels::gemm({.a = a, .b = b, .y = y});
  kernels::softmax_forward({.x = y, .y = y, .dim = 1});  // in place

  const kernels::Workspace wide_memory(kRows * kCols * 4, device);
  kernels::copy({.x = y, .y = on(device, wide_memory, DType::f32, {kRows, kCols})});
  float first = 0;
  device_copy(&first, Device{}, wide_memory.as<void>(), device, sizeof first);
  std::printf("softmax(a b)[0] = %g on %s, expected 0.1\n", first, describe(device).c_str());
}
