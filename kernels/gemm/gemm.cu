// gemm on the device: turns views into a problem of plain strides, picks a kernel of the ladder
// (gemm_naive.cu, gemm_simt.cu, gemm_tensor.cu) or the library, and the number of blocks that share
// the k of a tile.
//
// Choice of the tile and of split-K. A multiprocessor runs ceil(tiles * splits / processors)
// blocks. Each block costs its steps of k, a fixed start and end and, if k is split, the transfer
// of its sums through memory. The cheapest of all tile sizes and splits is taken: a function of
// shape, dtype and device alone, so results repeat bit for bit.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/cuda/tuning_internal.h>
#include <binade/kernels/gemm/cublaslt_gemm_internal.h>
#include <binade/kernels/gemm/gemm_internal.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <binade/kernels/gemm/gemm_kernels.cuh>

#include <optional>
#include <type_traits>

namespace binade::kernels {
namespace {

// Sets one of the two strides to 1 if the layout has contiguous rows or columns, also if a size is
// 1 and its stride is therefore free.
void normalize(int64_t outer, int64_t k, int64_t& outer_stride, int64_t& k_stride) {
  if (k == 1) {
    k_stride = outer_stride == 1 ? 0 : 1;
  }
  if (outer == 1) {
    outer_stride = k_stride == 1 ? 0 : 1;
  }
}

// True if 16-byte chunks along the dimension of stride 1 are aligned.
template <class T>
bool has_vectors(const T* base, int64_t batches, int64_t batch_stride, int64_t s, int64_t t) {
  const int64_t other = s == 1 ? t : s;
  return (s == 1 || t == 1) && reinterpret_cast<uintptr_t>(base) % 16 == 0 &&
         other % kChunk<T> == 0 && (batches == 1 || batch_stride % kChunk<T> == 0);
}

template <class T>
GemmOperands<T> problem_of(const Gemm& g) {
  const int dim = g.y.dim();
  GemmOperands<T> p;
  p.batches = dim == 3 ? g.y.size(0) : 1;
  p.m = g.y.size(dim - 2);
  p.n = g.y.size(dim - 1);
  p.k = g.a.size(dim - 1);
  MatrixStrides a = matrix_strides(g.a), b = matrix_strides(g.b), y = matrix_strides(g.y);
  p.a = g.a.as<T>();
  p.b = g.b.as<T>();
  const bool transposed = y.row == 1 && y.column != 1;
  if (transposed) {  // y^T = b^T a^T has contiguous rows
    std::swap(p.a, p.b);
    std::swap(p.m, p.n);
    std::swap(a, b);
    std::swap(a.row, a.column);
    std::swap(b.row, b.column);
    std::swap(y.row, y.column);
  }
  normalize(p.m, p.k, a.row, a.column);
  normalize(p.n, p.k, b.column, b.row);
  p.a_batch = a.batch, p.a_row = a.row, p.a_k = a.column;
  p.b_batch = b.batch, p.b_k = b.row, p.b_column = b.column;
  p.a_vector = has_vectors(p.a, p.batches, a.batch, a.row, a.column);
  p.b_vector = has_vectors(p.b, p.batches, b.batch, b.row, b.column);
  p.y_batch = y.batch;
  p.output.y = g.y.as<T>();
  p.output.rows = p.m;
  p.output.columns = p.n;
  p.output.row_stride = y.row;
  p.output.column_stride = y.column;
  p.output.vector =
      y.column == 1 && has_vectors(g.y.as<T>(), p.batches, y.batch, p.m == 1 ? 0 : y.row, 1);
  p.output.epilogue = DeviceEpilogue<T>(g.epilogue);
  p.output.bias_per_row = transposed;
  return p;
}

struct Plan {
  int tile = 0, splits = 1;
};

// `tile`: 64, 128, or 0 for the cheaper one.
template <class T>
Plan plan(const GemmOperands<T>& p, int tile, int processors) {
  constexpr int64_t kStep = 32, kFixedSteps = 8, kSplitSteps = 12, kLeastSteps = 8;
  constexpr int kMostSplits = 32;
  const int64_t steps = ceil_div(p.k, kStep);
  Plan best;
  double best_cost = 0;
  for (const int candidate : {128, 64}) {
    if (tile != 0 && tile != candidate) {
      continue;
    }
    // Work of a step: the large tile multiplies four times as much and reads less per product.
    const double work = candidate == 128 ? 4 : 1.4;
    const int64_t tiles = p.batches * ceil_div(p.m, candidate) * ceil_div(p.n, candidate);
    for (int splits = 1; splits <= kMostSplits; ++splits) {
      if (splits > 1 && steps / splits < kLeastSteps) {
        break;
      }
      const int64_t rounds = ceil_div(tiles * splits, processors);
      const int64_t block = ceil_div(steps, splits) + kFixedSteps + (splits > 1 ? kSplitSteps : 0);
      const double cost = work * static_cast<double>(rounds) * static_cast<double>(block);
      if (best.tile == 0 || cost < best_cost) {
        best = {candidate, splits};
        best_cost = cost;
      }
    }
  }
  return best;
}

template <class T>
void run_tiles(GemmOperands<T>& p, Device device, bool tensor, int tile, int processors) {
  const Plan chosen = plan(p, std::is_same_v<T, double> ? 64 : tile, processors);
  p.split_k = ceil_div(ceil_div(p.k, chosen.splits), 32) * 32;
  p.splits = p.k == 0 ? 1 : static_cast<int>(ceil_div(p.k, p.split_k));
  const int64_t sums = p.splits > 1 ? p.splits * p.batches * p.m * p.n : 0;
  const Workspace partials(static_cast<size_t>(sums) * sizeof(Compute<T>), device);
  p.partials = partials.as<Compute<T>>();
  if constexpr (sizeof(T) == 2) {
    tensor ? launch_gemm_tensor(p, chosen.tile) : launch_gemm_simt(p, chosen.tile);
  } else {
    launch_gemm_simt(p, chosen.tile);
  }
  if (p.splits > 1) {
    launch_gemm_split_sum(p);
  }
}

template <class T>
void run_own(const Gemm& g, KernelVariant variant) {
  GemmOperands<T> p = problem_of<T>(g);
  const DeviceFacts facts = device_facts(g.y.device);
  const bool tensor = facts.tensor_cores(g.y.dtype);
  switch (variant) {
    case KernelVariant::naive: launch_gemm_naive(p); break;
    case KernelVariant::tiled: launch_gemm_tiled(p); break;
    case KernelVariant::simt: run_tiles(p, g.y.device, false, 0, facts.processors); break;
    case KernelVariant::simt_64: run_tiles(p, g.y.device, false, 64, facts.processors); break;
    case KernelVariant::simt_128: run_tiles(p, g.y.device, false, 128, facts.processors); break;
    case KernelVariant::tensor_64: run_tiles(p, g.y.device, tensor, 64, facts.processors); break;
    case KernelVariant::tensor_128: run_tiles(p, g.y.device, tensor, 128, facts.processors); break;
    default: run_tiles(p, g.y.device, tensor, 0, facts.processors);
  }
}

bool run(const Gemm& g, KernelVariant variant, std::string& why) {
  if (variant == KernelVariant::library) {
    why = "cuBLASLt has no algorithm for it";
    return library_gemm(g);
  }
  dispatch_floating("gemm", g.y.dtype, [&]<class T>(Type<T>) { run_own<T>(g, variant); });
  return true;
}

// Names everything that the time of a product depends on.
std::string problem_name(const Gemm& g) {
  const auto layout = [](const View& v) {
    const MatrixStrides s = matrix_strides(v);
    return s.column == 1 ? "n" : s.row == 1 ? "t" : "s";
  };
  return text("gemm ", g.y.dtype, " ", g.a.sizes, " ", g.b.sizes, " ", layout(g.a), layout(g.b),
              layout(g.y), g.epilogue.accumulate ? " accumulate" : "",
              g.epilogue.bias ? " bias" : "",
              g.epilogue.activation == Activation::none ? "" : " activation");
}

std::vector<int64_t> key_of(const Gemm& g) {
  std::vector<int64_t> key{static_cast<int64_t>(g.y.dtype), int64_t{g.epilogue.accumulate},
                           int64_t{static_cast<bool>(g.epilogue.bias)},
                           int64_t{g.epilogue.activation != Activation::none}};
  for (const View* v : {&g.a, &g.b, &g.y}) {
    const MatrixStrides s = matrix_strides(*v);
    key.insert(key.end(), v->sizes.begin(), v->sizes.end());
    key.push_back(s.column == 1 ? 0 : s.row == 1 ? 1 : 2);
  }
  return key;
}

std::vector<Candidate> candidates(DType dtype, const DeviceFacts& facts) {
  const bool tensor = facts.tensor_cores(dtype);
  const char* no_simt = tensor ? "tensor cores are faster" : "";
  const char* no_tensor = tensor ? "" : "no tensor cores for this dtype";
  return {{"own", KernelVariant::fitting, ""},
          {"own:simt_64", KernelVariant::simt_64, no_simt},
          {"own:simt_128", KernelVariant::simt_128, no_simt},
          {"own:tensor_64", KernelVariant::tensor_64, no_tensor},
          {"own:tensor_128", KernelVariant::tensor_128, no_tensor},
          {"library", KernelVariant::library, gemm_library_absence()}};
}

// y keeps its old values while variants are timed: the epilogue may add to them.
KernelVariant timed_variant(const Gemm& g) {
  static auto& choices = *new ProviderChoices;
  const std::vector<int64_t> key = key_of(g);
  int64_t last = 0;
  for (int i = 0; i < g.y.dim(); ++i) {
    last += (g.y.size(i) - 1) * g.y.strides[i];
  }
  std::optional<Workspace> memory;
  return choices.choose(
      {.device = g.y.device,
       .key = key,
       .name = [&] { return problem_name(g); },
       .candidates = [&] { return candidates(g.y.dtype, device_facts(g.y.device)); },
       .run =
           [&](KernelVariant variant, std::string& why) {
             if (!memory) {
               memory.emplace(static_cast<size_t>(last + 1) * size_of(g.y.dtype), g.y.device);
             }
             View scratch = g.y;
             scratch.data = memory->as<std::byte>();
             return run({.a = g.a, .b = g.b, .y = scratch, .epilogue = g.epilogue}, variant, why);
           }});
}

}  // namespace

void cuda::gemm(const Gemm& g) {
  check_arguments(g);
  if (g.y.numel == 0) {
    return;
  }
  KernelVariant variant = gemm_variant();
  if (variant == KernelVariant::timed) {
    variant = timed_variant(g);
  } else if (variant == KernelVariant::library) {
    require_gemm_library();
  }
  std::string why;
  if (!run(g, variant, why)) {
    run(g, KernelVariant::fitting, why);
  }
}

}  // namespace binade::kernels
