// What nvcc gives every source without an include: built-in variables, vector types, device
// functions and the runtime. This header is the first line of a translated source.
#pragma once
#include <binade/kernels/host/primitives.h>
#include <binade/lab/device/atomics.h>
#include <binade/lab/device/intrinsics.h>
#include <binade/lab/device/runtime.h>
#include <binade/lab/device/vectors.h>
#include <binade/lab/device/warp.h>

#define __constant__
#define __CUDA_ARCH__ 900
