// A step of a ladder as the tests see it: what it registers, and the types of the cases' entries.
#pragma once
#include <binade/kernels/base/half.h>

#include <cstdint>
#include <string>
#include <vector>

namespace plain_cuda {

// CUDA's __half, with its explicit conversions.
struct Half {
  binade::half stored{};

  Half() = default;
  Half(float value) : stored(value) {}   // NOLINT(google-explicit-constructor): as in CUDA
  Half(double value) : stored(value) {}  // NOLINT(google-explicit-constructor)
  Half(int value) : stored(static_cast<float>(value)) {}  // NOLINT(google-explicit-constructor)
  float value() const { return static_cast<float>(stored); }
  operator float() const { return value(); }  // NOLINT(google-explicit-constructor)
};

// Entries, with the parameters of the cases.
using Solve_softmax = void (*)(const float* x, float* y, int rows, int cols);
using Solve_gemm = void (*)(const float* a, const float* b, float* y, int m, int n, int k);
using Solve_gemm_f16 = void (*)(const Half* a, const Half* b, float* y, int m, int n, int k);
using Solve_reduce = void (*)(const float* x, float* y, int n);
using Solve_transpose = void (*)(const float* x, float* y, int rows, int cols);

// What the access report does not count, summed over the launches since it was last cleared.
struct Counts {
  uint64_t barriers = 0;  // of warps: a barrier of a block of 256 threads counts 8
  uint64_t shuffles = 0;  // of warps
  uint64_t atomics = 0;   // of threads
  uint64_t products = 0;  // of warps: 16 x 16 x 16 products on tensor cores
};
inline Counts& executed() {
  static Counts counts;
  return counts;
}

struct Step {
  std::string case_name, file;
  void* solve;
};
inline std::vector<Step>& steps() {
  static std::vector<Step> all;
  return all;
}
struct Registered {
  Registered(const char* case_name, const char* file, void* solve) {
    steps().push_back({case_name, file, solve});
  }
};

}  // namespace plain_cuda
