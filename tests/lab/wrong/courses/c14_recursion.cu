// case: reduce

// Recursion over halves of a range does not end, because a range of one element is halved again.
#include <cuda_runtime.h>
__device__ float sum(const float* x, int begin, int end) {  //! out of bounds
  if (begin == end)
    return 0;
  const int middle = (begin + end) / 2;
  return sum(x, begin, middle) + sum(x, middle, end);
}
__global__ void k(const float* x, float* y, int n) { y[0] = sum(x, 0, n); }
extern "C" void solve(const float* x, float* y, int n) { k<<<1, 1>>>(x, y, n); }
