// Attention on CUDA cores, for f32 and f64, and for f16 and bf16 where the tensor cores cannot be
// used (kernels/attention/attention.cu). A block of 16 x 16 threads owns 32 rows and loops over
// tiles of 32 x 32 scores: each thread has the scores of 2 x 2 pairs, 16 apart, so that a row lies
// in 16 lanes of one warp. Each block computes 64 columns of the result, so any head size works:
// wide heads recompute their scores.
#include <binade/kernels/attention/attention.cuh>

namespace binade::kernels {
namespace {

constexpr int kSide = 32, kLanesX = 16, kThreads = 256, kChunkColumns = 64;

template <class C>
struct SimtShared {
  C a[kSide][kSide + 1], b[kSide][kSide + 1];
  C weights[kSide][kSide + 1];
  C values[kSide][kChunkColumns + 1];
};

// Rows [first, first + 32) of one head's matrix.
template <class T>
struct Rows {
  const HeadArray<const T>& array;
  const T* data;
  int64_t first;

  __device__ Rows(const HeadArray<const T>& a, int64_t batch, int64_t head, int64_t row)
      : array(a), data(a.head(batch, head)), first(row) {}
  __device__ __forceinline__ Compute<T> at(int64_t row, int column) const {
    return first + row < array.rows && column < array.columns
               ? static_cast<Compute<T>>(data[array.offset(first + row, column)])
               : Compute<T>(0);
  }
};

struct Thread {
  int x = static_cast<int>(threadIdx.x) % kLanesX, y = static_cast<int>(threadIdx.x) / kLanesX;
};

// sums[r][c] = row y + 16 r of a times row x + 16 c of b. The whole block must call it.
template <class T, class C>
__device__ __forceinline__ void multiply_rows(SimtShared<C>& memory, const Rows<T>& a,
                                              const Rows<T>& b, C (&sums)[2][2]) {
  const Thread t;
  sums[0][0] = sums[0][1] = sums[1][0] = sums[1][1] = 0;
#pragma unroll 1
  for (int d = 0; d < a.array.columns; d += kSide) {
    __syncthreads();  // the previous tiles have been read
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide; i += kThreads) {
      const int row = i / kSide, column = i % kSide;
      memory.a[row][column] = a.at(row, d + column);
      memory.b[row][column] = b.at(row, d + column);
    }
    __syncthreads();
    const int depth = a.array.columns - d < kSide ? a.array.columns - d : kSide;
#pragma unroll 4
    for (int i = 0; i < depth; ++i) {
      const C a0 = memory.a[t.y][i], a1 = memory.a[t.y + 16][i];
      const C b0 = memory.b[t.x][i], b1 = memory.b[t.x + 16][i];
      sums[0][0] += a0 * b0;
      sums[0][1] += a0 * b1;
      sums[1][0] += a1 * b0;
      sums[1][1] += a1 * b1;
    }
  }
}

// totals[r][c] += sum_j weights[y + 16 r][j] value[j][x + 16 c] over the rows j of `values`,
// columns from `column`. The weights must be in `memory`; the whole block must call it.
template <class T, class C>
__device__ __forceinline__ void add_weighted(SimtShared<C>& memory, const Rows<T>& values,
                                             int column, C (&totals)[2][4]) {
  const Thread t;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kChunkColumns; i += kThreads) {
    memory.values[i / kChunkColumns][i % kChunkColumns] =
        values.at(i / kChunkColumns, column + i % kChunkColumns);
  }
  __syncthreads();
#pragma unroll 2
  for (int j = 0; j < kSide; ++j) {
    const C w0 = memory.weights[t.y][j], w1 = memory.weights[t.y + 16][j];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const C value = memory.values[j][t.x + 16 * c];
      totals[0][c] += w0 * value;
      totals[1][c] += w1 * value;
    }
  }
  __syncthreads();  // before weights and values are overwritten
}

template <class T, class C>
__device__ __forceinline__ void store_rows(const HeadArray<T>& target, const BlockPlace& place,
                                           int column, const C (&values)[2][4]) {
  const Thread t;
  T* data = target.head(place.batch, place.head);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t row = place.first + t.y + 16 * r;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int at = column + t.x + 16 * c;
      if (row < target.rows && at < target.columns) {
        data[target.offset(row, at)] = static_cast<T>(values[r][c]);
      }
    }
  }
}

// Which of this thread's pairs dropout keeps, as bits 2 r + c. The loop is not unrolled, to save
// registers.
template <bool kOwnKeys, class T>
__device__ __forceinline__ uint32_t kept_bits(const AttentionProblem<T>& p, const BlockPlace& place,
                                              int64_t other) {
  if (p.dropout.p == 0) {
    return 0xf;
  }
  const Thread t;
  const DropoutMask kept(p, place.batch, place.head);
  uint32_t bits = 0;
#pragma unroll 1
  for (int j = 0; j < 4; ++j) {
    const int64_t row = place.first + t.y + j / 2 * 16, column = other + t.x + j % 2 * 16;
    bits |= uint32_t{kOwnKeys ? kept(column, row) : kept(row, column)} << j;
  }
  return bits;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_forward_simt_kernel(const __grid_constant__ AttentionProblem<T> p) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<SimtShared<C>>();
  const Thread t;
  const BlockPlace place(blockIdx.x, ceil_div(p.queries(), kSide), kSide, p.heads);
  const int column = static_cast<int>(blockIdx.y) * kChunkColumns;
  const Scorer<T> scorer(p, place.batch, place.head);
  const Rows<T> q(p.q, place.batch, place.head, place.first);
  SoftmaxState<C> state[2];
  C totals[2][4] = {};
  const int64_t end = p.causal && place.first + kSide < p.keys() ? place.first + kSide : p.keys();
#pragma unroll 1
  for (int64_t j = 0; j < end; j += kSide) {
    const uint32_t kept = kept_bits<false>(p, place, j);
    C scores[2][2];
    multiply_rows(memory, q, Rows<T>(p.k, place.batch, place.head, j), scores);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int64_t query = place.first + t.y + 16 * r;
      const ColumnRange seen = scorer.template columns<false>(query, j, kSide);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int key = t.x + 16 * c;
        scores[r][c] = key < seen.end ? scorer(scores[r][c], query, j + key)
                                      : -std::numeric_limits<C>::infinity();
      }
      const C top = dev::warp_reduce<dev::Max, kLanesX>(scores[r][0] > scores[r][1] ? scores[r][0]
                                                                                    : scores[r][1]);
      const C factor = state[r].template raise<T>(top);
      const C base = state[r].base();
      const C p0 = dev::exp_for<T>(scores[r][0] - base), p1 = dev::exp_for<T>(scores[r][1] - base);
      state[r].sum += dev::warp_reduce<dev::Sum, kLanesX>(p0 + p1);
      memory.weights[t.y + 16 * r][t.x] = kept >> 2 * r & 1 ? p0 : C(0);
      memory.weights[t.y + 16 * r][t.x + 16] = kept >> (2 * r + 1) & 1 ? p1 : C(0);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        totals[r][c] *= factor;
      }
    }
    add_weighted(memory, Rows<T>(p.v, place.batch, place.head, j), column, totals);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t query = place.first + t.y + 16 * r;
    const C scale = state[r].inverse() * static_cast<C>(p.dropout.scale);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      totals[r][c] *= scale;
    }
    if (blockIdx.y == 0 && t.x == 0 && query < p.queries()) {
      p.lse[p.row(place.batch, place.head, query)] = state[r].lse();
    }
  }
  store_rows(p.result, place, column, totals);
}

// The kept weights and ds of this thread's pairs of rows and columns.
template <class C>
struct PairGradients {
  C weights[2][2], gradients[2][2];
};

// Rows are queries (kOwnKeys: keys).
template <class T, bool kOwnKeys>
__device__ __forceinline__ void make_gradients(SimtShared<Compute<T>>& memory,
                                               const AttentionProblem<T>& p,
                                               const Scorer<T>& scorer, const BlockPlace& place,
                                               int64_t other, PairGradients<Compute<T>>& pairs) {
  using C = Compute<T>;
  auto& [weights, gradients] = pairs;
  const Thread t;
  const int64_t b = place.batch, h = place.head, own = place.first;
  const uint32_t kept = kept_bits<kOwnKeys>(p, place, other);
  multiply_rows(memory, Rows<T>(kOwnKeys ? p.k : p.q, b, h, own),
                Rows<T>(kOwnKeys ? p.q : p.k, b, h, other), weights);
  multiply_rows(memory, Rows<T>(kOwnKeys ? p.v : p.dout, b, h, own),
                Rows<T>(kOwnKeys ? p.dout : p.v, b, h, other), gradients);
  const C keep_scale = static_cast<C>(p.dropout.scale);
  const C* lse = p.lse + p.row(b, h, kOwnKeys ? other : 0);
  const C* delta = p.delta + p.row(b, h, kOwnKeys ? other : 0);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t row = own + t.y + 16 * r;
    const ColumnRange seen = scorer.template columns<kOwnKeys>(row, other, kSide);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = t.x + 16 * c;
      C weight = 0, gradient = 0;
      if (seen.has(column)) {
        const int64_t at = kOwnKeys ? column : row;
        const int64_t query = kOwnKeys ? other + column : row,
                      key = kOwnKeys ? row : other + column;
        const C whole = probability<T>(scorer(weights[r][c], query, key), lse[at]);
        const bool keep = kept >> (2 * r + c) & 1;
        weight = keep ? whole : C(0);
        gradient = whole * ((keep ? gradients[r][c] * keep_scale : C(0)) - delta[at]);
      }
      weights[r][c] = weight;
      gradients[r][c] = gradient;
    }
  }
}

// dq; with kOwnKeys dk (chunks of columns below dk_chunks) and dv (the other chunks).
template <class T, bool kOwnKeys>
__global__ void __launch_bounds__(kThreads)
    attention_backward_simt_kernel(const __grid_constant__ AttentionProblem<T> p, int dk_chunks) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<SimtShared<C>>();
  const Thread t;
  const int64_t rows = kOwnKeys ? p.keys() : p.queries();
  const int64_t others = kOwnKeys ? p.queries() : p.keys();
  const BlockPlace place(blockIdx.x, ceil_div(rows, kSide), kSide, p.heads);
  const bool values = kOwnKeys && static_cast<int>(blockIdx.y) >= dk_chunks;
  const int column = (static_cast<int>(blockIdx.y) - (values ? dk_chunks : 0)) * kChunkColumns;
  const Scorer<T> scorer(p, place.batch, place.head);
  C totals[2][4] = {};
  // Causal: queries before the first key of the block do not see its keys, and no query sees keys
  // after the last one.
  const int64_t begin = kOwnKeys && p.causal ? place.first : 0;
  const int64_t end =
      !kOwnKeys && p.causal && place.first + kSide < others ? place.first + kSide : others;
#pragma unroll 1
  for (int64_t other = begin; other < end; other += kSide) {
    PairGradients<C> pairs;
    make_gradients<T, kOwnKeys>(memory, p, scorer, place, other, pairs);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        memory.weights[t.y + 16 * r][t.x + 16 * c] =
            values ? pairs.weights[r][c] : pairs.gradients[r][c];
      }
    }
    const HeadArray<const T>& factor = !kOwnKeys ? p.k : values ? p.dout : p.q;
    add_weighted(memory, Rows<T>(factor, place.batch, place.head, other), column, totals);
  }
  const C scale = values ? static_cast<C>(p.dropout.scale) : p.scale;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      totals[r][c] *= scale;
    }
  }
  const HeadArray<T>& target = !kOwnKeys ? p.dq : values ? p.dv : p.dk;
  if (target.data) {
    store_rows(target, place, column, totals);
  }
}

// ds of one tile, summed over the batch and heads for which dmask has size 1.
template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_mask_gradient_kernel(const __grid_constant__ AttentionProblem<T> p,
                                   int64_t mask_heads, int64_t batches, int64_t heads) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<SimtShared<C>>();
  const Thread t;
  const int64_t tiles = ceil_div(p.queries(), kSide);
  BlockPlace place(blockIdx.x, tiles, kSide, mask_heads);
  T* target = p.dmask.head(place.batch, place.head);
  const int64_t first_batch = place.batch, first_head = place.head;
#pragma unroll 1
  for (int64_t key = int64_t{blockIdx.y} * kSide; key < p.keys();
       key += int64_t{gridDim.y} * kSide) {
    C sums[2][2] = {};
#pragma unroll 1
    for (int64_t one = 0; one < batches * heads; ++one) {
      place.batch = first_batch + one / heads;
      place.head = first_head + one % heads;
      const Scorer<T> scorer(p, place.batch, place.head);
      PairGradients<C> pairs;
      make_gradients<T, false>(memory, p, scorer, place, key, pairs);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[i / 2][i % 2] += pairs.gradients[i / 2][i % 2];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t row = place.first + t.y + 16 * (i / 2), column = key + t.x + 16 * (i % 2);
      if (row < p.queries() && column < p.keys()) {
        target[p.dmask.offset(row, column)] = static_cast<T>(sums[i / 2][i % 2]);
      }
    }
  }
}

unsigned head_blocks(const AttentionSizes& n, int64_t length) {
  return attention_blocks(n, length, kSide);
}
unsigned chunks(int64_t columns) {
  return static_cast<unsigned>(ceil_div(columns > 0 ? columns : 1, kChunkColumns));
}

}  // namespace

template <class T>
void launch_attention_simt(const AttentionProblem<T>& p, const AttentionSizes& n) {
  launch({"attention_forward_simt_kernel", dim3(head_blocks(n, n.queries), chunks(n.value_size)),
          kThreads, sizeof(SimtShared<Compute<T>>)},
         attention_forward_simt_kernel<T>, p);
}

template <class T>
void launch_attention_simt_backward(const AttentionProblem<T>& p, const AttentionSizes& n) {
  constexpr size_t kShared = sizeof(SimtShared<Compute<T>>);
  if (p.dq.data) {
    launch({"attention_backward_simt_kernel", dim3(head_blocks(n, n.queries), chunks(n.size)),
            kThreads, kShared},
           attention_backward_simt_kernel<T, false>, p, 0);
  }
  if (p.dk.data || p.dv.data) {
    const unsigned dk = p.dk.data ? chunks(n.size) : 0, dv = p.dv.data ? chunks(n.value_size) : 0;
    launch({"attention_backward_simt_kernel", dim3(head_blocks(n, n.keys), dk + dv), kThreads,
            kShared},
           attention_backward_simt_kernel<T, true>, p, static_cast<int>(dk));
  }
}

template <class T>
void launch_attention_mask_gradient(const AttentionProblem<T>& p, const AttentionSizes& n) {
  const bool one_batch = p.dmask.batch_stride == 0, one_head = p.dmask.head_stride == 0;
  const AttentionSizes own{
      one_batch ? 1 : n.batch, one_head ? 1 : n.heads, n.queries, n.keys, n.size, n.value_size};
  const int64_t tiles = ceil_div(n.keys, kSide);
  launch({"attention_mask_gradient_kernel",
          dim3(head_blocks(own, n.queries), static_cast<unsigned>(tiles < 65535 ? tiles : 65535)),
          kThreads, sizeof(SimtShared<Compute<T>>)},
         attention_mask_gradient_kernel<T>, p, own.heads, one_batch ? n.batch : 1,
         one_head ? n.heads : 1);
}

#define BINADE_INSTANTIATE(T)                                                                      \
  template void launch_attention_simt(const AttentionProblem<T>&, const AttentionSizes&);          \
  template void launch_attention_simt_backward(const AttentionProblem<T>&, const AttentionSizes&); \
  template void launch_attention_mask_gradient(const AttentionProblem<T>&, const AttentionSizes&);
BINADE_INSTANTIATE(double)
BINADE_INSTANTIATE(float)
BINADE_INSTANTIATE(half)
BINADE_INSTANTIATE(bfloat16)
#undef BINADE_INSTANTIATE

}  // namespace binade::kernels
