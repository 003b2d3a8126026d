// cuda_runtime.h for kernels in the lab. As with nvcc, a file has it without including it.
#pragma once
#include <binade/lab/device/prelude.h>
