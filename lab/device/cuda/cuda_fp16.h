// cuda_fp16.h for kernels in the lab.
#pragma once
#include <binade/lab/device/half_functions.h>
using half = __half;
using half2 = __half2;
