// The part of cuBLASLt that Binade calls, as a table of functions found at run time: a build needs
// neither its header nor its library, and programs run without it. Layouts and numbers are those of
// cublasLt.h 12 and 13; builds by nvcc compare them with the header if there is one
// (cublaslt_api_cuda.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace binade::kernels::cublaslt {

enum Status : int { kSuccess = 0, kInvalidValue = 7, kArchMismatch = 8, kNotSupported = 15 };
// True if the library cannot do what was asked and has done nothing.
constexpr bool is_refusal(Status status) {
  return status == kInvalidValue || status == kArchMismatch || status == kNotSupported;
}
enum Compute : int { kCompute32F = 68, kCompute64F = 70 };
enum DataType : int { kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14 };
enum Transpose : int { kOpN = 0, kOpT = 1 };
enum Epilogue : int { kDefault = 1, kBias = 4, kGelu = 32, kGeluBias = 36 };
enum LayoutAttribute : int { kBatchCount = 5, kStridedBatchOffset = 6 };
enum DescriptionAttribute : int {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kBiasDataType = 26
};
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemeMask = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8
};
inline constexpr uint32_t kReduceInComputeType = 2;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

using Handle = struct HandleOpaque*;
using Layout = struct LayoutOpaque*;
using Description = struct DescriptionOpaque*;
using Preference = struct PreferenceOpaque*;
using Stream = void*;  // cudaStream_t

// Matmul computes d = epilogue(alpha a b + beta c) on column-major matrices.
struct Api {
  Status (*Create)(Handle* handle);
  const char* (*GetStatusName)(Status status);
  const char* (*GetStatusString)(Status status);
  Status (*MatrixLayoutCreate)(Layout* layout, DataType type, uint64_t rows, uint64_t columns,
                               int64_t leading);
  Status (*MatrixLayoutDestroy)(Layout layout);
  Status (*MatrixLayoutSetAttribute)(Layout layout, LayoutAttribute which, const void* value,
                                     size_t bytes);
  Status (*MatmulDescCreate)(Description* description, Compute compute, DataType scale);
  Status (*MatmulDescDestroy)(Description description);
  Status (*MatmulDescSetAttribute)(Description description, DescriptionAttribute which,
                                   const void* value, size_t bytes);
  Status (*MatmulPreferenceCreate)(Preference* preference);
  Status (*MatmulPreferenceDestroy)(Preference preference);
  Status (*MatmulPreferenceSetAttribute)(Preference preference, PreferenceAttribute which,
                                         const void* value, size_t bytes);
  Status (*MatmulAlgoGetHeuristic)(Handle handle, Description description, Layout a, Layout b,
                                   Layout c, Layout d, Preference preference, int wanted,
                                   Heuristic* found, int* count);
  Status (*Matmul)(Handle handle, Description description, const void* alpha, const void* a,
                   Layout a_layout, const void* b, Layout b_layout, const void* beta, const void* c,
                   Layout c_layout, void* d, Layout d_layout, const Algorithm* algorithm,
                   void* workspace, size_t workspace_bytes, Stream stream);
};

// Loaded by the first call (kernels/base/vendor_library.h). REQUIRES: missing() is empty.
const Api& api();
// The reason why there is no library; empty if it is loaded.
const std::string& missing();
const std::string& path();  // of the loaded file

}  // namespace binade::kernels::cublaslt
