// cuBLASLt sees matrices as column-major, so it computes y^T = b^T a^T: its first operand is our b,
// its rows are our columns, and its bias along rows is our bias along columns.
//
// f32 is computed in f32 (CUBLAS_COMPUTE_32F never uses TF32), f16 and bf16 with f32 sums that are
// rounded once: where k is split, partial sums stay f32. The algorithm of a problem is the first
// that the library's heuristic returns. It is asked once per problem and cached; nothing is timed.
#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/gemm/cublaslt_gemm_internal.h>
#include <binade/kernels/gemm/gemm_internal.h>

#include <atomic>
#ifdef BINADE_WITH_CUBLASLT
#include <binade/kernels/base/workspace.h>
#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>
#endif

namespace binade::kernels {
namespace {

std::atomic<int64_t> calls{0};

#ifdef BINADE_WITH_CUBLASLT

constexpr size_t kWorkspaceBytes = size_t{32} << 20;

void check_library(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    fail("gemm: ", what, " failed: ", cublasLtGetStatusName(status), ", ",
         cublasLtGetStatusString(status));
  }
}

// Objects of the library; they live for one call.
template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
struct Owned {
  Handle handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle) {
      kDestroy(handle);
    }
  }
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

// A matrix as the library sees it: [rows, columns] column-major, or its transpose in memory.
struct Operand {
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;
};

// `row` and `column`: strides of an operand with these sizes. False if neither is 1.
bool describe(int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t batch,
              Operand& operand) {
  if (row != 1 && column != 1) {
    return false;
  }
  operand.transposed = row != 1;
  operand.rows = operand.transposed ? columns : rows;
  operand.columns = operand.transposed ? rows : columns;
  const int64_t leading = operand.transposed ? row : column;
  operand.leading = operand.columns == 1 ? operand.rows : leading;
  operand.batch_stride = batch;
  return operand.leading >= operand.rows;
}

struct Product {
  DType dtype = DType::f32;
  int64_t batches = 1;
  Operand a, b, y;  // in the library's order: its a is our b
  bool accumulate = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

bool describe(const Gemm& g, Product& product) {
  const int dim = g.y.dim();
  const int64_t m = g.y.size(dim - 2), n = g.y.size(dim - 1), k = g.a.size(dim - 1);
  const MatrixStrides a = matrix_strides(g.a), b = matrix_strides(g.b), y = matrix_strides(g.y);
  product.dtype = g.y.dtype;
  product.batches = dim == 3 ? g.y.size(0) : 1;
  product.accumulate = g.epilogue.accumulate;
  if (k == 0 || product.batches > INT32_MAX ||
      !describe(n, k, b.column, b.row, b.batch, product.a) ||
      !describe(k, m, a.column, a.row, a.batch, product.b) ||
      !describe(n, m, y.column, y.row, y.batch, product.y) || product.y.transposed) {
    return false;
  }
  if (g.epilogue.bias && n > 1 && g.epilogue.bias.strides[0] != 1) {
    return false;
  }
  const bool bias = static_cast<bool>(g.epilogue.bias);
  switch (g.epilogue.activation) {
    case Activation::none:
      product.epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      break;
    case Activation::relu:
      product.epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
      break;
    case Activation::gelu_tanh:
      product.epilogue = bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      break;
    case Activation::gelu: return false;  // the library's gelu is the tanh approximation
  }
  return true;
}

uint32_t alignment(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uintptr_t lowest = address & (~address + 1);
  return address == 0 || lowest > 256 ? 256 : static_cast<uint32_t>(lowest);
}

void create(const Product& product, const Operand& operand, Layout& layout) {
  check_library(cublasLtMatrixLayoutCreate(&layout.handle, data_type(product.dtype),
                                           static_cast<uint64_t>(operand.rows),
                                           static_cast<uint64_t>(operand.columns), operand.leading),
                "cublasLtMatrixLayoutCreate");
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, const auto& value) {
    check_library(cublasLtMatrixLayoutSetAttribute(layout.handle, which, &value, sizeof value),
                  "cublasLtMatrixLayoutSetAttribute");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(product.batches));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, operand.batch_stride);
}

void create(const Product& product, const Gemm& g, Description& description) {
  const bool f64 = product.dtype == DType::f64;
  check_library(
      cublasLtMatmulDescCreate(&description.handle, f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                               f64 ? CUDA_R_64F : CUDA_R_32F),
      "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    check_library(cublasLtMatmulDescSetAttribute(description.handle, which, &value, sizeof value),
                  "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, product.epilogue);
  if (g.epilogue.bias) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.epilogue.bias.as<const void>());
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(data_type(product.dtype)));
  }
}

struct Choice {
  bool found = false;
  cublasLtMatmulAlgo_t algorithm = {};
};

Choice ask(cublasLtHandle_t library, const Gemm& g, const Description& description, const Layout& a,
           const Layout& b, const Layout& y) {
  Preference preference;
  check_library(cublasLtMatmulPreferenceCreate(&preference.handle),
                "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check_library(
        cublasLtMatmulPreferenceSetAttribute(preference.handle, which, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(g.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(g.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(g.y.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(g.y.data));
  cublasLtMatmulHeuristicResult_t result = {};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library, description.handle, a.handle, b.handle, y.handle,
                                     y.handle, preference.handle, 1, &result, &count);
  return {status == CUBLAS_STATUS_SUCCESS && count > 0 && result.state == CUBLAS_STATUS_SUCCESS,
          result.algo};
}

// The choice of an algorithm depends on the product and on the alignment of its memory.
using Key = std::array<int64_t, 23>;
Key key_of(const Gemm& g, const Product& product) {
  Key key = {};
  size_t i = 0;
  for (const int64_t value :
       {int64_t{g.y.device.index}, static_cast<int64_t>(product.dtype), product.batches,
        static_cast<int64_t>(product.epilogue), int64_t{product.accumulate}}) {
    key[i++] = value;
  }
  const void* data[] = {g.b.data, g.a.data, g.y.data};
  for (const Operand* operand : {&product.a, &product.b, &product.y}) {
    key[i++] = operand->rows;
    key[i++] = operand->columns;
    key[i++] = operand->leading;
    key[i++] = operand->batch_stride;
    key[i++] = operand->transposed;
  }
  for (const void* p : data) {
    key[i++] = alignment(p);
  }
  return key;
}

struct Library {
  std::mutex mutex;
  std::map<int, cublasLtHandle_t> handles;  // by device; they live as long as the process
  std::map<Key, Choice> choices;
};

bool multiply(const Gemm& g) {
  Product product;
  if (!describe(g, product)) {
    return false;
  }
  Description description;
  Layout a, b, y;
  create(product, g, description);
  create(product, product.a, a);
  create(product, product.b, b);
  create(product, product.y, y);
  static auto& state = *new Library;
  cublasLtHandle_t handle = nullptr;
  Choice choice;
  {
    const std::lock_guard lock(state.mutex);
    cublasLtHandle_t& slot = state.handles[g.y.device.index];
    if (!slot) {
      check_library(cublasLtCreate(&slot), "cublasLtCreate");
    }
    handle = slot;
    const auto [entry, is_new] = state.choices.try_emplace(key_of(g, product));
    if (is_new) {
      entry->second = ask(handle, g, description, a, b, y);
    }
    choice = entry->second;
  }
  if (!choice.found) {
    return false;
  }
  const Workspace workspace(kWorkspaceBytes, g.y.device);
  const float one = 1, zero = 0;
  const double one_f64 = 1, zero_f64 = 0;
  const bool f64 = product.dtype == DType::f64;
  const void* alpha = f64 ? static_cast<const void*>(&one_f64) : &one;
  const void* nothing = f64 ? static_cast<const void*>(&zero_f64) : &zero;
  check_library(
      cublasLtMatmul(handle, description.handle, alpha, g.b.data, a.handle, g.a.data, b.handle,
                     product.accumulate ? alpha : nothing, g.y.data, y.handle, g.y.data, y.handle,
                     &choice.algorithm, workspace.as<void>(), kWorkspaceBytes,
                     static_cast<cudaStream_t>(current_stream(g.y.device))),
      "cublasLtMatmul");
  return true;
}

#elif defined(BINADE_HOST_EXECUTION)

bool multiply(const Gemm& g) {
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(current_stream(g.y.device))),
             "cudaStreamSynchronize");
  cpu::gemm(g);
  return true;
}

#else

bool multiply(const Gemm&) { return false; }

#endif

}  // namespace

bool library_gemm(const Gemm& g) {
  const bool done = multiply(g);
  calls += done;
  return done;
}

int64_t library_gemm_calls() { return calls; }

}  // namespace binade::kernels
