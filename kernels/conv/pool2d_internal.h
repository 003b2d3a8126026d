// The windows of pooling, the same on every device.
#pragma once
#include <binade/kernels/conv/pool2d.h>
#include <binade/kernels/conv/pool2d_windows_internal.h>

namespace binade::kernels {

// The windows along dimension 2 + i of an input x and an output y.
PoolWindows pool_windows(const View& x, const View& y, const Pool2dGeometry& g, int i);
PoolWindows adaptive_pool_windows(const View& x, const View& y, int i);

}  // namespace binade::kernels
