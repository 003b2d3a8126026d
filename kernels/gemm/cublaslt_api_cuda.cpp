// Loads cuBLASLt, and compares our declarations with its header.
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/gemm/cublaslt_api_internal.h>
#if !defined(BINADE_HOST_EXECUTION) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace binade::kernels::cublaslt {

#if !defined(BINADE_HOST_EXECUTION) && __has_include(<cublasLt.h>)
static_assert(int{kSuccess} == CUBLAS_STATUS_SUCCESS);
static_assert(int{kInvalidValue} == CUBLAS_STATUS_INVALID_VALUE);
static_assert(int{kArchMismatch} == CUBLAS_STATUS_ARCH_MISMATCH);
static_assert(int{kNotSupported} == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(int{kCompute32F} == CUBLAS_COMPUTE_32F && int{kCompute64F} == CUBLAS_COMPUTE_64F);
static_assert(int{kR32F} == CUDA_R_32F && int{kR64F} == CUDA_R_64F);
static_assert(int{kR16F} == CUDA_R_16F && int{kR16BF} == CUDA_R_16BF);
static_assert(int{kOpN} == CUBLAS_OP_N && int{kOpT} == CUBLAS_OP_T);
static_assert(int{kDefault} == CUBLASLT_EPILOGUE_DEFAULT && int{kBias} == CUBLASLT_EPILOGUE_BIAS);
static_assert(int{kGelu} == CUBLASLT_EPILOGUE_GELU);
static_assert(int{kGeluBias} == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(int{kBatchCount} == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(int{kStridedBatchOffset} == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(int{kTransA} == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(int{kTransB} == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(int{kEpilogue} == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(int{kBiasPointer} == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(int{kBiasDataType} == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(int{kMaxWorkspaceBytes} == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int{kReductionSchemeMask} == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(int{kMinAlignmentA} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(int{kMinAlignmentB} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(int{kMinAlignmentC} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(int{kMinAlignmentD} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kReduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
#endif

namespace {

struct Library {
  Api table{};
  LoadedLibrary loaded;

  Library() : loaded(kCublasLt, [this](const auto& find) { return fill(find); }) {}

 private:
  std::string fill(const LoadedLibrary::Find& find) {
#define BINADE_FIND(name) find_function(find, "cublasLt" #name, table.name)
    BINADE_FIND(Create);
    BINADE_FIND(GetStatusName);
    BINADE_FIND(GetStatusString);
    BINADE_FIND(MatrixLayoutCreate);
    BINADE_FIND(MatrixLayoutDestroy);
    BINADE_FIND(MatrixLayoutSetAttribute);
    BINADE_FIND(MatmulDescCreate);
    BINADE_FIND(MatmulDescDestroy);
    BINADE_FIND(MatmulDescSetAttribute);
    BINADE_FIND(MatmulPreferenceCreate);
    BINADE_FIND(MatmulPreferenceDestroy);
    BINADE_FIND(MatmulPreferenceSetAttribute);
    BINADE_FIND(MatmulAlgoGetHeuristic);
    BINADE_FIND(Matmul);
#undef BINADE_FIND
    return {};  // LoadedLibrary reports the missing function
  }
};

const Library& library() {
  static const auto* instance = new Library;  // kernels may run while the program ends
  return *instance;
}

}  // namespace

const Api& api() { return library().table; }
const std::string& missing() { return library().loaded.missing(); }
const std::string& path() { return library().loaded.path(); }

}  // namespace binade::kernels::cublaslt
