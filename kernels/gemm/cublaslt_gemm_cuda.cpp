// cuBLASLt sees matrices as column-major, so it computes y^T = b^T a^T: its first operand is our b,
// its rows are our columns, and its bias along rows is our bias along columns.
//
// f32 is computed in f32 (CUBLAS_COMPUTE_32F never uses TF32), f16 and bf16 with f32 sums that are
// rounded once: where k is split, partial sums stay f32. The algorithm of a problem is the first
// that the library's heuristic returns. It is asked once per problem, and the answers to the last
// plan_limit() problems are kept; nothing is timed.
//
// The library's relu may turn NaN into 0, which would hide an overflow from the loss scaler. So a
// product with relu runs without it, followed by our own relu in place.
#include <binade/kernels/base/provider.h>
#include <binade/kernels/base/stream.h>
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/recent_cache_internal.h>
#include <binade/kernels/cuda/relaxed_capture_internal.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/gemm/cublaslt_api_internal.h>
#include <binade/kernels/gemm/cublaslt_gemm_internal.h>
#include <binade/kernels/gemm/gemm_internal.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>

namespace binade::kernels {
namespace {

namespace lt = cublaslt;

std::atomic<int64_t> calls{0};

constexpr size_t kWorkspaceBytes = size_t{32} << 20;

void check_library(lt::Status status, const char* what) {
  if (status != lt::kSuccess) {
    fail("gemm: ", what, " failed: ", lt::api().GetStatusName(status), ", ",
         lt::api().GetStatusString(status));
  }
}

// Objects of the library; they live for one call.
template <class Handle, lt::Status (*lt::Api::*kDestroy)(Handle)>
struct Owned {
  Handle handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle) {
      (lt::api().*kDestroy)(handle);
    }
  }
};
using Layout = Owned<lt::Layout, &lt::Api::MatrixLayoutDestroy>;
using Description = Owned<lt::Description, &lt::Api::MatmulDescDestroy>;
using Preference = Owned<lt::Preference, &lt::Api::MatmulPreferenceDestroy>;

lt::DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return lt::kR64F;
    case DType::f16: return lt::kR16F;
    case DType::bf16: return lt::kR16BF;
    default: return lt::kR32F;
  }
}

// A matrix in the library's terms: column-major [rows, columns]; `transposed`: used transposed.
struct Operand {
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;
};

// `row` and `column` are the strides of an operand with these sizes. False if neither is 1.
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
  lt::Epilogue epilogue = lt::kDefault;
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
    case Activation::relu: product.epilogue = bias ? lt::kBias : lt::kDefault; break;
    case Activation::gelu_tanh:
      // Measured on an H200: in f64 only 10 digits are right; in 16 bits the error is up to 1.4
      // units in the last place.
      if (product.dtype != DType::f32) {
        return false;
      }
      product.epilogue = bias ? lt::kGeluBias : lt::kGelu;
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
  check_library(lt::api().MatrixLayoutCreate(
                    &layout.handle, data_type(product.dtype), static_cast<uint64_t>(operand.rows),
                    static_cast<uint64_t>(operand.columns), operand.leading),
                "cublasLtMatrixLayoutCreate");
  const auto set = [&](lt::LayoutAttribute which, const auto& value) {
    check_library(lt::api().MatrixLayoutSetAttribute(layout.handle, which, &value, sizeof value),
                  "cublasLtMatrixLayoutSetAttribute");
  };
  set(lt::kBatchCount, static_cast<int32_t>(product.batches));
  set(lt::kStridedBatchOffset, operand.batch_stride);
}

void create(const Product& product, const Gemm& g, Description& description) {
  const bool f64 = product.dtype == DType::f64;
  check_library(
      lt::api().MatmulDescCreate(&description.handle, f64 ? lt::kCompute64F : lt::kCompute32F,
                                 f64 ? lt::kR64F : lt::kR32F),
      "cublasLtMatmulDescCreate");
  const auto set = [&](lt::DescriptionAttribute which, const auto& value) {
    check_library(lt::api().MatmulDescSetAttribute(description.handle, which, &value, sizeof value),
                  "cublasLtMatmulDescSetAttribute");
  };
  set(lt::kTransA, product.a.transposed ? lt::kOpT : lt::kOpN);
  set(lt::kTransB, product.b.transposed ? lt::kOpT : lt::kOpN);
  set(lt::kEpilogue, product.epilogue);
  if (g.epilogue.bias) {
    set(lt::kBiasPointer, g.epilogue.bias.as<const void>());
    set(lt::kBiasDataType, data_type(product.dtype));
  }
}

struct Choice {
  bool found = false;
  lt::Algorithm algorithm = {};
  bool lasting = true;  // false: the library failed to answer, so ask it again next time
};

Choice ask(lt::Handle library, const Gemm& g, const Description& description, const Layout& a,
           const Layout& b, const Layout& y) {
  Preference preference;
  check_library(lt::api().MatmulPreferenceCreate(&preference.handle),
                "cublasLtMatmulPreferenceCreate");
  const auto set = [&](lt::PreferenceAttribute which, const auto& value) {
    check_library(
        lt::api().MatmulPreferenceSetAttribute(preference.handle, which, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
  };
  set(lt::kMaxWorkspaceBytes, static_cast<uint64_t>(kWorkspaceBytes));
  set(lt::kReductionSchemeMask, lt::kReduceInComputeType);
  set(lt::kMinAlignmentA, alignment(g.b.data));
  set(lt::kMinAlignmentB, alignment(g.a.data));
  set(lt::kMinAlignmentC, alignment(g.y.data));
  set(lt::kMinAlignmentD, alignment(g.y.data));
  lt::Heuristic result = {};
  int count = 0;
  const lt::Status status =
      lt::api().MatmulAlgoGetHeuristic(library, description.handle, a.handle, b.handle, y.handle,
                                       y.handle, preference.handle, 1, &result, &count);
  return {.found = status == lt::kSuccess && count > 0 && result.state == lt::kSuccess,
          .algorithm = result.algorithm,
          .lasting = status == lt::kSuccess || lt::is_refusal(status)};
}

// The algorithm depends on the product and on the alignment of its operands, including the bias,
// which some algorithms read in vectors.
using Key = std::array<int64_t, 24>;
Key key_of(const Gemm& g, const Product& product) {
  Key key = {};
  size_t i = 0;
  for (const int64_t value :
       {int64_t{g.y.device.index}, static_cast<int64_t>(product.dtype), product.batches,
        static_cast<int64_t>(product.epilogue), int64_t{product.accumulate}}) {
    key[i++] = value;
  }
  const void* data[] = {g.b.data, g.a.data, g.y.data, g.epilogue.bias.data};
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

struct Plans {
  std::mutex mutex;
  std::map<int, lt::Handle> handles;  // by device; they live as long as the process
  RecentCache<Key, Choice> choices;
};

Plans& all_plans() {
  static auto& plans = *new Plans;
  return plans;
}

// REQUIRES: the lock is held.
void keep(Plans& plans, const Key& key, const Choice& choice) {
  if (Choice* known = plans.choices.find(key)) {
    *known = choice;
    return;
  }
  while (plans.choices.take_beyond(plan_limit() - 1)) {
  }
  plans.choices.add(key, choice);
}

// Makes a handle of the current device. A library that loads may still not start, for lack of
// memory: that is noted once.
bool start(lt::Handle& handle) {
  const lt::Status status = lt::api().Create(&handle);
  if (status == lt::kSuccess) {
    return true;
  }
  handle = nullptr;
  static std::atomic<bool> noted{false};
  if (!noted.exchange(true)) {
    send_notice(text("cuBLASLt does not start: cublasLtCreate: ", lt::api().GetStatusName(status),
                     "; matrix products run on Binade's own kernels"));
  }
  return false;
}

// Starts the product. Returns false and does nothing if the library does not start, has no
// algorithm for the product, or refuses to execute it.
bool run_product(const Gemm& g, const Product& product) {
  Description description;
  Layout a, b, y;
  create(product, g, description);
  create(product, product.a, a);
  create(product, product.b, b);
  create(product, product.y, y);
  Plans& plans = all_plans();
  const RelaxedCapture relaxed;  // the library may load kernels, also when it first multiplies
  const Key key = key_of(g, product);
  lt::Handle handle = nullptr;
  Choice choice;
  {
    const std::lock_guard lock(plans.mutex);
    lt::Handle& slot = plans.handles[g.y.device.index];
    if (!slot && !start(slot)) {
      return false;
    }
    handle = slot;
    const Choice* known = plans.choices.find(key);
    choice = known ? *known : ask(handle, g, description, a, b, y);
    if (!known && choice.lasting) {
      keep(plans, key, choice);
    }
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
  const lt::Status status = lt::api().Matmul(
      handle, description.handle, alpha, g.b.data, a.handle, g.a.data, b.handle,
      product.accumulate ? alpha : nothing, g.y.data, y.handle, g.y.data, y.handle,
      &choice.algorithm, workspace.as<void>(), kWorkspaceBytes, current_stream(g.y.device));
  if (lt::is_refusal(status)) {
    const std::lock_guard lock(plans.mutex);
    keep(plans, key, {});
    return false;
  }
  check_library(status, "cublasLtMatmul");
  return true;
}

#ifdef BINADE_HOST_EXECUTION
// Computes on the CPU backend. Host execution does so unless the environment names a library.
bool compute_on_host(const Gemm& g) {
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(current_stream(g.y.device))),
             "cudaStreamSynchronize");
  cpu::gemm(g);
  return true;
}
#endif

bool multiply(const Gemm& g) {
#ifdef BINADE_HOST_EXECUTION
  if (!is_named(kCublasLt)) {
    return compute_on_host(g);
  }
#endif
  Product product;
  if (!lt::missing().empty() || !describe(g, product) || !run_product(g, product)) {
    return false;
  }
  if (g.epilogue.activation == Activation::relu) {
    cuda::unary_forward({.op = Unary::relu, .x = g.y, .y = g.y});
  }
  return true;
}

}  // namespace

bool library_gemm(const Gemm& g) {
  const bool done = multiply(g);
  calls += done;
  return done;
}

void require_gemm_library() {
#ifdef BINADE_HOST_EXECUTION
  if (!is_named(kCublasLt)) {
    return;
  }
#endif
  check(lt::missing().empty(), "gemm: got the provider \"library\", but ", lt::missing(),
        "; or use the provider \"own\"");
}

std::string gemm_library_absence() {
#ifdef BINADE_HOST_EXECUTION
  if (!is_named(kCublasLt)) {
    return "the emulated device was given no cuBLASLt";
  }
#endif
  if (lt::missing().empty()) {
    return "";
  }
  note_missing(kCublasLt, "matrix products run on Binade's own kernels");
  return "cuBLASLt was not loaded";
}

int64_t library_gemm_calls() { return calls; }

int64_t library_gemm_plans() {
  Plans& plans = all_plans();
  const std::lock_guard lock(plans.mutex);
  return plans.choices.size();
}

}  // namespace binade::kernels
