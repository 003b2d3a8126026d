// Types and declarations of the CUDA driver API. The runtime looks its functions up: libcuda is
// never linked.
#pragma once
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/cuda_driver.h>
#else
#include <cuda.h>
#endif
