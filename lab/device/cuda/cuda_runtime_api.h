// cuda_runtime_api.h for kernels in the lab: all of it is in cuda_runtime.h.
#pragma once
#include <binade/lab/device/prelude.h>
