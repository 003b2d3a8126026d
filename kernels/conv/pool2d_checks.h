// Argument checks of pooling and its windows, the same on every device.
#pragma once
#include <binade/kernels/conv/pool2d.h>
#include <binade/kernels/conv/pool2d_windows_internal.h>

namespace binade::kernels {

void check_arguments(const MaxPool2dForward& a);
void check_arguments(const MaxPool2dBackward& a);
void check_arguments(const AvgPool2dForward& a);
void check_arguments(const AvgPool2dBackward& a);
void check_arguments(const AdaptiveAvgPool2dForward& a);
void check_arguments(const AdaptiveAvgPool2dBackward& a);

// The windows along dimension 2 + i of an input x and an output y.
PoolWindows pool_windows(const View& x, const View& y, const Pool2dGeometry& g, int i);
PoolWindows adaptive_pool_windows(const View& x, const View& y, int i);

}  // namespace binade::kernels
