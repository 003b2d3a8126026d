// mma.h for kernels in the lab: nvcuda::wmma.
#pragma once
#include <binade/kernels/host/wmma.h>
#include <binade/lab/device/half_functions.h>
#include <binade/lab/device/prelude.h>
using half = __half;
using half2 = __half2;
