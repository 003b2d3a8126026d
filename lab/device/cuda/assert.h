// <assert.h> for kernels in the lab: assert() ends the kernel, with its block and thread.
#pragma once
#include <binade/lab/device/intrinsics.h>
