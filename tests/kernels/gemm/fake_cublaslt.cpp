// A stand-in for libcublasLt on the emulated device: it checks every argument, queues the product
// on the stream, and computes it in double, rounded once. Where the documentation leaves a choice,
// it takes the worst: its relu turns NaN into 0, its algorithms depend on the bias alignment for
// which they were chosen, and it loads kernels when it first answers or multiplies, which is
// allowed during a capture only if the thread is relaxed. BINADE_FAKE_CUBLASLT_REFUSES chooses a
// failure: start (no handle), question (no answer, which is no refusal) or execution (a refusal).
#include <binade/kernels/base/half.h>
#include <binade/kernels/gemm/cublaslt_api_internal.h>
#include <binade/kernels/host/cuda_runtime.h>
#include <binade/kernels/host/queue.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

namespace binade::kernels::cublaslt {

struct HandleOpaque {
  int device;
};
struct LayoutOpaque {
  DataType type;
  uint64_t rows, columns;
  int64_t leading, batch_stride = 0;
  int32_t batches = 1;
};
struct DescriptionOpaque {
  Compute compute;
  DataType scale;
  int transposed_a = kOpN, transposed_b = kOpN, epilogue = kDefault, bias_type = -1;
  const void* bias = nullptr;
};
struct PreferenceOpaque {
  std::map<int, uint64_t> values;
};

namespace {

constexpr Status kInvalid = kInvalidValue, kMapping{11}, kInternal{14};
constexpr uint64_t kMagic = 0xb1ade0cb1a5;

size_t width_of(int type) { return type == kR64F ? 8 : type == kR32F ? 4 : 2; }
uint64_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uintptr_t lowest = address & (~address + 1);
  return address == 0 || lowest > 256 ? 256 : lowest;
}

double load(const void* p, int type, int64_t i) {
  switch (type) {
    case kR64F: return static_cast<const double*>(p)[i];
    case kR32F: return static_cast<const float*>(p)[i];
    case kR16F: return static_cast<double>(static_cast<const half*>(p)[i]);
    default: return static_cast<double>(static_cast<const bfloat16*>(p)[i]);
  }
}
void store(void* p, int type, int64_t i, double value) {
  switch (type) {
    case kR64F: static_cast<double*>(p)[i] = value; break;
    case kR32F: static_cast<float*>(p)[i] = static_cast<float>(value); break;
    case kR16F: static_cast<half*>(p)[i] = half(value); break;
    default: static_cast<bfloat16*>(p)[i] = bfloat16(value);
  }
}

struct Job {
  DescriptionOpaque description;
  LayoutOpaque a, b, d;
  const void *a_data, *b_data;
  void* d_data;
  bool adds;  // beta is 1
};

double finished(const DescriptionOpaque& description, int type, double sum, int64_t row) {
  if ((description.epilogue & kBias) != 0) {
    sum += load(description.bias, type, row);
  }
  if ((description.epilogue & 2) != 0) {  // relu
    return std::fmax(sum, 0);
  }
  if ((description.epilogue & kGelu) != 0) {
    return 0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
  }
  return sum;
}

void compute(const Job& job) {
  const auto at = [](const LayoutOpaque& layout, bool transposed, int64_t i, int64_t j) {
    return transposed ? j + i * layout.leading : i + j * layout.leading;
  };
  const bool ta = job.description.transposed_a == kOpT, tb = job.description.transposed_b == kOpT;
  const auto inner = static_cast<int64_t>(ta ? job.a.rows : job.a.columns);
  for (int32_t batch = 0; batch < job.d.batches; ++batch) {
    for (int64_t j = 0; j < static_cast<int64_t>(job.d.columns); ++j) {
      for (int64_t i = 0; i < static_cast<int64_t>(job.d.rows); ++i) {
        const int64_t target = batch * job.d.batch_stride + i + j * job.d.leading;
        double sum = job.adds ? load(job.d_data, job.d.type, target) : 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += load(job.a_data, job.a.type, batch * job.a.batch_stride + at(job.a, ta, i, k)) *
                 load(job.b_data, job.b.type, batch * job.b.batch_stride + at(job.b, tb, k, j));
        }
        store(job.d_data, job.d.type, target, finished(job.description, job.d.type, sum, i));
      }
    }
  }
}

// True if the shapes match and leading dimensions are at least as long as a column.
bool fits(const DescriptionOpaque& description, const LayoutOpaque& a, const LayoutOpaque& b,
          const LayoutOpaque& d) {
  const bool ta = description.transposed_a == kOpT, tb = description.transposed_b == kOpT;
  const uint64_t rows = ta ? a.columns : a.rows, inner = ta ? a.rows : a.columns;
  const uint64_t b_inner = tb ? b.columns : b.rows, columns = tb ? b.rows : b.columns;
  const auto holds = [](const LayoutOpaque& layout) {
    return layout.rows > 0 && layout.columns > 0 &&
           layout.leading >= static_cast<int64_t>(layout.rows);
  };
  const bool types = a.type == b.type && a.type == d.type &&
                     (a.type == kR64F) == (description.compute == kCompute64F) &&
                     description.scale == (a.type == kR64F ? kR64F : kR32F);
  return types && rows == d.rows && columns == d.columns && inner == b_inner && inner > 0 &&
         a.batches == d.batches && b.batches == d.batches && holds(a) && holds(b) && holds(d);
}

bool bias_fits(const DescriptionOpaque& description, const LayoutOpaque& d) {
  return (description.epilogue & kBias) == 0 ||
         (description.bias && description.bias_type == d.type &&
          alignment_of(description.bias) >= width_of(d.type));
}

// What a chosen algorithm requires: alignments, and the most workspace, in bytes.
struct Chosen {
  uint64_t magic;
  uint64_t a, b, d, bias, workspace;
};
constexpr size_t kWorkspaceBytes = 4096, kWorkspaceAlignment = 16;
static_assert(sizeof(Chosen) <= sizeof(Algorithm));

bool fails(const char* what) {
  const char* name = std::getenv("BINADE_FAKE_CUBLASLT_REFUSES");
  return name && std::string_view(name) == what;
}

bool may_load() {
  void* block = nullptr;
  return cudaMalloc(&block, 256) == cudaSuccess && cudaFree(block) == cudaSuccess;
}

template <class T>
Status assign(T& target, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) {
    return kInvalid;
  }
  std::memcpy(&target, value, bytes);
  return kSuccess;
}

}  // namespace

extern "C" {

Status cublasLtCreate(Handle* handle) {
  if (fails("start") || !may_load()) {
    return kInternal;
  }
  int device = 0;
  cudaGetDevice(&device);
  *handle = new HandleOpaque{device};
  return kSuccess;
}
const char* cublasLtGetStatusName(Status status) {
  return status == kInvalid    ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == kMapping  ? "CUBLAS_STATUS_MAPPING_ERROR"
         : status == kInternal ? "CUBLAS_STATUS_INTERNAL_ERROR"
                               : "CUBLAS_STATUS_NOT_SUPPORTED";
}
const char* cublasLtGetStatusString(Status) { return "refused by the stand-in"; }

Status cublasLtMatrixLayoutCreate(Layout* layout, DataType type, uint64_t rows, uint64_t columns,
                                  int64_t leading) {
  *layout = new LayoutOpaque{type, rows, columns, leading};
  return kSuccess;
}
Status cublasLtMatrixLayoutDestroy(Layout layout) {
  delete layout;
  return kSuccess;
}
Status cublasLtMatrixLayoutSetAttribute(Layout layout, LayoutAttribute which, const void* value,
                                        size_t bytes) {
  return which == kBatchCount           ? assign(layout->batches, value, bytes)
         : which == kStridedBatchOffset ? assign(layout->batch_stride, value, bytes)
                                        : kInvalid;
}

Status cublasLtMatmulDescCreate(Description* description, Compute compute_type, DataType scale) {
  *description = new DescriptionOpaque{compute_type, scale};
  return kSuccess;
}
Status cublasLtMatmulDescDestroy(Description description) {
  delete description;
  return kSuccess;
}
Status cublasLtMatmulDescSetAttribute(Description description, DescriptionAttribute which,
                                      const void* value, size_t bytes) {
  switch (which) {
    case kTransA: return assign(description->transposed_a, value, bytes);
    case kTransB: return assign(description->transposed_b, value, bytes);
    case kEpilogue: return assign(description->epilogue, value, bytes);
    case kBiasPointer: return assign(description->bias, value, bytes);
    case kBiasDataType: return assign(description->bias_type, value, bytes);
  }
  return kInvalid;
}

Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  *preference = new PreferenceOpaque;
  return kSuccess;
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  delete preference;
  return kSuccess;
}
Status cublasLtMatmulPreferenceSetAttribute(Preference preference, PreferenceAttribute which,
                                            const void* value, size_t bytes) {
  if (bytes != (which == kMaxWorkspaceBytes ? 8 : 4)) {
    return kInvalid;
  }
  std::memcpy(&preference->values[which], value, bytes);
  return kSuccess;
}

Status cublasLtMatmulAlgoGetHeuristic(Handle handle, Description description, Layout a, Layout b,
                                      Layout c, Layout d, Preference preference, int wanted,
                                      Heuristic* found, int* count) {
  if (fails("question") || !may_load()) {
    return kInternal;
  }
  auto& limits = preference->values;
  if (!handle || wanted < 1 || c->leading != d->leading || !fits(*description, *a, *b, *d) ||
      !bias_fits(*description, *d) || limits[kReductionSchemeMask] != kReduceInComputeType) {
    return kInvalid;
  }
  const Chosen chosen{kMagic,
                      limits[kMinAlignmentA],
                      limits[kMinAlignmentB],
                      limits[kMinAlignmentD],
                      alignment_of(description->bias),
                      limits[kMaxWorkspaceBytes]};
  *found = {};
  std::memcpy(&found->algorithm, &chosen, sizeof chosen);
  found->state = limits[kMinAlignmentC] == limits[kMinAlignmentD] ? kSuccess : kNotSupported;
  found->workspace_bytes = kWorkspaceBytes;
  *count = found->workspace_bytes <= limits[kMaxWorkspaceBytes] ? 1 : 0;
  return kSuccess;
}

Status cublasLtMatmul(Handle handle, Description description, const void* alpha, const void* a,
                      Layout a_layout, const void* b, Layout b_layout, const void* beta,
                      const void* c, Layout c_layout, void* d, Layout d_layout,
                      const Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                      Stream stream) {
  if (fails("execution")) {
    return kNotSupported;
  }
  if (!may_load()) {
    return kInternal;
  }
  Chosen chosen;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  const bool f64 = d_layout->type == kR64F;
  const auto scalar = [&](const void* p) {
    return f64 ? *static_cast<const double*>(p) : double{*static_cast<const float*>(p)};
  };
  int device = 0;
  cudaGetDevice(&device);
  if (handle->device != device || chosen.magic != kMagic || c != d || c_layout != d_layout ||
      !workspace || workspace_bytes < kWorkspaceBytes || workspace_bytes > chosen.workspace ||
      alignment_of(workspace) < kWorkspaceAlignment || scalar(alpha) != 1 ||
      !fits(*description, *a_layout, *b_layout, *d_layout) || !bias_fits(*description, *d_layout)) {
    return kInvalid;
  }
  if (alignment_of(a) < chosen.a || alignment_of(b) < chosen.b || alignment_of(d) < chosen.d ||
      alignment_of(description->bias) < chosen.bias) {
    return kMapping;
  }
  std::memset(workspace, 0xff, kWorkspaceBytes);
  const Job job{*description, *a_layout, *b_layout, *d_layout, a, b, d, scalar(beta) == 1};
  return host::enqueue_kernel(
             {.name = "cublasLtMatmul", .grid = dim3(1), .block = dim3(1), .stream = stream},
             [job] { compute(job); }) == cudaSuccess
             ? kSuccess
             : kNotSupported;
}

}  // extern "C"

}  // namespace binade::kernels::cublaslt
