// The CUDA runtime API: the toolkit's, or for host execution the fake of the calls in use.
#pragma once
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/cuda_runtime.h>
#else
#include <cuda_runtime_api.h>
#endif
