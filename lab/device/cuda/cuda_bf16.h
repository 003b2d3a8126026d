// cuda_bf16.h for kernels in the lab.
#pragma once
#include <binade/lab/device/half_functions.h>
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
