// The CUDA runtime API: the toolkit's, or for host execution a fake of the calls that Binade uses.
#pragma once
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/cuda_runtime.h>
#else
#include <cuda_runtime_api.h>
#endif
