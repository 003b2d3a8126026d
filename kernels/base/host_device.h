// BINADE_HD: a function that nvcc compiles for the host and for the device.
#pragma once

#ifdef __CUDACC__
#define BINADE_HD __host__ __device__
#else
#define BINADE_HD
#endif
