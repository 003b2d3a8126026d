// case: scan

// Compensated sums, and recursion over halves of the array.
#include <cuda_runtime.h>

struct Sum {
  float value = 0, lost = 0;
  __device__ void add(float v) {
    const float fixed = __fsub_rn(v, lost), next = __fadd_rn(value, fixed);
    lost = __fsub_rn(__fsub_rn(next, value), fixed);
    value = next;
  }
};
__device__ float sum_of(const float* x, int n) {
  if (n <= 64) {
    Sum sum;
    for (int i = 0; i < n; ++i)
      sum.add(x[i]);
    return sum.value;
  }
  return sum_of(x, n / 2) + sum_of(x + n / 2, n - n / 2);
}
__global__ void scan(const float* x, float* y, int n) {
  const int first = threadIdx.x * ((n + 31) / 32), end = min(first + (n + 31) / 32, n);
  if (first >= end)
    return;
  Sum sum;
  if (first > 0)
    sum.add(sum_of(x, first));
  for (int i = first; i < end; ++i) {
    sum.add(x[i]);
    y[i] = sum.value;
  }
}
extern "C" void solve(const float* x, float* y, int n) { scan<<<1, 32>>>(x, y, n); }
