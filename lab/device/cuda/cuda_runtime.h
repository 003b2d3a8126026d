// cuda_runtime.h for kernels in the lab. As with nvcc, every file has it without an include.
#pragma once
#include <binade/lab/device/prelude.h>
