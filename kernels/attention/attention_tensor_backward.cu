// Attention backward on the tensor cores, f16 and bf16 with f32 scores and sums. One kernel has two
// roles: its block of 4 warps owns 64 queries and loops over tiles of 32 keys (dq), or owns 64 keys
// and loops over tiles of 32 or 16 queries (dk and dv). Either way the scores and their gradients
// are products of own rows and other rows; rounded, they are the left operands of the products that
// are added to the own gradients.
#include <binade/kernels/attention/attention_tile.cuh>

namespace binade::kernels {
namespace {

// Rows of a tile of the other side: fewer if the sums of dk and dv fill the registers.
template <int kD, bool kOwnKeys>
constexpr int kOtherRows = kD == 128 && kOwnKeys ? 16 : 32;

template <class T, int kD, int kOther>
struct BackwardShared {
  HeadTile<T, kOwnRows, kD> own_first, own_second;    // q and dout, or k and v
  HeadTile<T, kOther, kD> other_first, other_second;  // k and v, or q and dout
};

// The products of own rows and other rows; then the weights and ds.
template <int kOther>
struct PairGradients {
  float weights[kOther / 8][4], gradients[kOther / 8][4];
};

// Turns the products into the weights and ds.
template <class T, bool kOwnKeys, int kOther, bool kDropout>
__device__ __forceinline__ void make_gradients(const AttentionProblem<T>& p,
                                               const Scorer<T>& scorer, const BlockPlace& place,
                                               int64_t own, int64_t other,
                                               PairGradients<kOther>& pairs) {
  auto& [weights, gradients] = pairs;
  const uint32_t kept =
      kDropout ? kept_bits<kOwnKeys, kOther>(DropoutMask(p, place.batch, place.head), own, other)
               : 0;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float keep_scale = kDropout ? static_cast<float>(p.dropout.scale) : 1;
  const float* lse = p.lse + p.row(place.batch, place.head, kOwnKeys ? other : 0);
  const float* delta = p.delta + p.row(place.batch, place.head, kOwnKeys ? other : 0);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t row = own + lane / 4 + r * 8;
    const ColumnRange seen = scorer.template columns<kOwnKeys>(row, other, kOther);
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        const int column = n * 8 + lane % 4 * 2 + i % 2;
        float weight = 0, gradient = 0;
        if (seen.has(column)) {
          const int64_t at = kOwnKeys ? column : row;
          const float score = scorer(weights[n][i], kOwnKeys ? other + column : row,
                                     kOwnKeys ? row : other + column);
          const bool keep = !kDropout || (kept >> (4 * n + i) & 1);
          const float dropped = keep ? gradients[n][i] * keep_scale : 0;
          weight = probability<T>(score, lse[at]);
          gradient = weight * (dropped - delta[at]);
          weight = keep ? weight : 0;
        }
        weights[n][i] = weight;
        gradients[n][i] = gradient;
      }
    }
  }
}

template <class T, int kD, bool kOwnKeys, bool kDropout>
__global__ void __launch_bounds__(kTensorThreads, 2)
    attention_backward_tensor_kernel(const __grid_constant__ AttentionProblem<T> p) {
  constexpr int kOther = kOtherRows<kD, kOwnKeys>;
  auto& memory = dev::shared_mem<BackwardShared<T, kD, kOther>>();
  const int64_t rows = kOwnKeys ? p.keys() : p.queries();
  const int64_t others = kOwnKeys ? p.queries() : p.keys();
  const BlockPlace place(blockIdx.x, ceil_div(rows, kOwnRows), kOwnRows, p.heads);
  const int64_t b = place.batch, h = place.head;
  const Scorer<T> scorer(p, b, h);
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  const HeadArray<const T>&own_first = kOwnKeys ? p.k : p.q, &own_second = kOwnKeys ? p.v : p.dout;
  const HeadArray<const T>&first = kOwnKeys ? p.q : p.k, &second = kOwnKeys ? p.dout : p.v;
  memory.own_first.load(own_first, own_first.head(b, h), place.first);
  memory.own_second.load(own_second, own_second.head(b, h), place.first);
  // Causal: queries before the first own key do not see the own keys; no query sees keys after the
  // last one.
  const int64_t begin = kOwnKeys && p.causal ? place.first : 0;
  const int64_t end =
      !kOwnKeys && p.causal && place.first + kOwnRows < others ? place.first + kOwnRows : others;
  float totals[kD / 8][4] = {}, value_totals[kOwnKeys ? kD / 8 : 1][4] = {};
#pragma unroll 1
  for (int64_t other = begin; other < end; other += kOther) {
    __syncthreads();  // the previous tiles have been used
    memory.other_first.load(first, first.head(b, h), other);
    memory.other_second.load(second, second.head(b, h), other);
    dev::cp_async_commit();
    dev::cp_async_wait<0>();
    __syncthreads();
    PairGradients<kOther> pairs;
    multiply_rows(memory.own_first, row, memory.other_first, p.q.columns, pairs.weights);
    multiply_rows(memory.own_second, row, memory.other_second, p.v.columns, pairs.gradients);
    make_gradients<T, kOwnKeys, kOther, kDropout>(p, scorer, place, place.first + row, other,
                                                  pairs);
    add_weighted<T, kOther, kD>(pairs.gradients, memory.other_first, totals);
    if constexpr (kOwnKeys) {
      add_weighted<T, kOther, kD>(pairs.weights, memory.other_second, value_totals);
    }
  }
  dev::cp_async_wait<0>();
  const float scale[2] = {p.scale, p.scale};
  const HeadArray<T>& target = kOwnKeys ? p.dk : p.dq;
  if (target.data) {
    store_rows<T, kD>(target, target.head(b, h), place.first + row, totals, scale);
  }
  if constexpr (kOwnKeys) {
    const float keep = kDropout ? static_cast<float>(p.dropout.scale) : 1;
    const float value_scale[2] = {keep, keep};
    if (p.dv.data) {
      store_rows<T, kD>(p.dv, p.dv.head(b, h), place.first + row, value_totals, value_scale);
    }
  }
}

template <class T, int kD, bool kDropout>
void launch_backward(const AttentionProblem<T>& p, const AttentionSizes& n) {
  if (p.dq.data) {
    launch({"attention_backward_tensor_kernel", attention_blocks(n, n.queries, kOwnRows),
            kTensorThreads, sizeof(BackwardShared<T, kD, kOtherRows<kD, false>>)},
           attention_backward_tensor_kernel<T, kD, false, kDropout>, p);
  }
  if (p.dk.data || p.dv.data) {
    launch({"attention_backward_tensor_kernel", attention_blocks(n, n.keys, kOwnRows),
            kTensorThreads, sizeof(BackwardShared<T, kD, kOtherRows<kD, true>>)},
           attention_backward_tensor_kernel<T, kD, true, kDropout>, p);
  }
}

template <class T, int kD>
void launch_backward(const AttentionProblem<T>& p, const AttentionSizes& n) {
  p.dropout.p > 0 ? launch_backward<T, kD, true>(p, n) : launch_backward<T, kD, false>(p, n);
}

}  // namespace

template <class T>
void launch_attention_tensor_backward(const AttentionProblem<T>& p, const AttentionSizes& n) {
  std::max(n.size, n.value_size) <= 64 ? launch_backward<T, 64>(p, n)
                                       : launch_backward<T, 128>(p, n);
}

template void launch_attention_tensor_backward(const AttentionProblem<half>&,
                                               const AttentionSizes&);
template void launch_attention_tensor_backward(const AttentionProblem<bfloat16>&,
                                               const AttentionSizes&);

}  // namespace binade::kernels
