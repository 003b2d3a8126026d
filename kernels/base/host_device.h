// BINADE_HD: a function for host and device. Builds with a device's numerics define it themselves.
#pragma once

#if defined(__CUDACC__)
#define BINADE_HD __host__ __device__
#elif !defined(BINADE_HD)
#define BINADE_HD
#endif
