// cooperative_groups/reduce.h for kernels in the lab.
#pragma once
#include <cooperative_groups.h>
