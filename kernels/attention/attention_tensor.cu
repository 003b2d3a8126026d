// Attention forward on the tensor cores, f16 and bf16 with f32 softmax and sums. A block of 4 warps
// owns 64 queries, 16 per warp, and loops over tiles of 64 keys: scores by mma.sync, the running
// softmax in registers, and its rounded exponentials times the values by mma.sync again. The values
// of a tile are copied while its scores are computed, and the next keys while the values are used.
#include <binade/kernels/attention/attention_tile.cuh>

namespace binade::kernels {
namespace {

constexpr int kKeyTile = 64;

template <class T, int kD>
struct ForwardShared {
  HeadTile<T, kOwnRows, kD> q;
  HeadTile<T, kKeyTile, kD> k, v;
};

// Turns the scores of a tile of keys from `key` into exponentials and updates totals and states.
template <class T, int kD>
__device__ __forceinline__ void softmax_step(const Scorer<T>& scorer, int64_t query, int64_t key,
                                             float (&scores)[kKeyTile / 8][4],
                                             SoftmaxState<float> (&state)[2],
                                             float (&totals)[kD / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t row = query + lane / 4 + r * 8;
    const ColumnRange seen = scorer.template columns<false>(row, key, kKeyTile);
    float top = -std::numeric_limits<float>::infinity();
#pragma unroll
    for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        const int column = n * 8 + lane % 4 * 2 + i % 2;
        scores[n][i] = column < seen.end ? scorer(scores[n][i], row, key + column)
                                         : -std::numeric_limits<float>::infinity();
        top = scores[n][i] > top ? scores[n][i] : top;
      }
    }
    const float factor = state[r].template raise<T>(dev::warp_reduce<dev::Max, 4>(top));
    const float base = state[r].base();
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = dev::exp_for<T>(scores[n][i] - base);
        sum += scores[n][i];
      }
    }
    state[r].sum += dev::warp_reduce<dev::Sum, 4>(sum);
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      totals[n][2 * r] *= factor;
      totals[n][2 * r + 1] *= factor;
    }
  }
}

template <class T, int kD, bool kDropout>
__global__ void __launch_bounds__(kTensorThreads, 2)
    attention_forward_tensor_kernel(const __grid_constant__ AttentionProblem<T> p) {
  auto& memory = dev::shared_mem<ForwardShared<T, kD>>();
  const BlockPlace place(blockIdx.x, ceil_div(p.queries(), kOwnRows), kOwnRows, p.heads);
  const Scorer<T> scorer(p, place.batch, place.head);
  const T* k = p.k.head(place.batch, place.head);
  const T* v = p.v.head(place.batch, place.head);
  const int row = static_cast<int>(threadIdx.x) / 32 * 16,
            lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t end =
      p.causal && place.first + kOwnRows < p.keys() ? place.first + kOwnRows : p.keys();
  SoftmaxState<float> state[2];
  float totals[kD / 8][4] = {};
  memory.q.load(p.q, p.q.head(place.batch, place.head), place.first);
  memory.k.load(p.k, k, 0);
  dev::cp_async_commit();
#pragma unroll 1
  for (int64_t key = 0; key < end; key += kKeyTile) {
    dev::cp_async_wait<0>();
    __syncthreads();  // the keys have arrived, the previous values have been used
    memory.v.load(p.v, v, key);
    dev::cp_async_commit();
    float scores[kKeyTile / 8][4];
    multiply_rows(memory.q, row, memory.k, p.q.columns, scores);
    dev::cp_async_wait<0>();
    __syncthreads();  // the values have arrived, the keys have been used
    if (key + kKeyTile < end) {
      memory.k.load(p.k, k, key + kKeyTile);
    }
    dev::cp_async_commit();
    softmax_step<T, kD>(scorer, place.first + row, key, scores, state, totals);
    if constexpr (kDropout) {
      const uint32_t kept = kept_bits<false, kKeyTile>(DropoutMask(p, place.batch, place.head),
                                                       place.first + row, key);
      drop_weights<kKeyTile>(kept, scores);
    }
    add_weighted<T, kKeyTile, kD>(scores, memory.v, totals);
  }
  dev::cp_async_wait<0>();
  const float keep_scale = kDropout ? static_cast<float>(p.dropout.scale) : 1;
  const float scale[2] = {state[0].inverse() * keep_scale, state[1].inverse() * keep_scale};
  store_rows<T, kD>(p.result, p.result.head(place.batch, place.head), place.first + row, totals,
                    scale);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t query = place.first + row + lane / 4 + r * 8;
    if (lane % 4 == 0 && query < p.queries()) {
      p.lse[p.row(place.batch, place.head, query)] = state[r].lse();
    }
  }
}

template <class T, int kD, bool kDropout>
void launch_forward(const AttentionProblem<T>& p, const AttentionSizes& n) {
  launch({"attention_forward_tensor_kernel", attention_blocks(n, n.queries, kOwnRows),
          kTensorThreads, sizeof(ForwardShared<T, kD>)},
         attention_forward_tensor_kernel<T, kD, kDropout>, p);
}

template <class T, int kD>
void launch_forward(const AttentionProblem<T>& p, const AttentionSizes& n) {
  p.dropout.p > 0 ? launch_forward<T, kD, true>(p, n) : launch_forward<T, kD, false>(p, n);
}

}  // namespace

template <class T>
void launch_attention_tensor(const AttentionProblem<T>& p, const AttentionSizes& n) {
  std::max(n.size, n.value_size) <= 64 ? launch_forward<T, 64>(p, n) : launch_forward<T, 128>(p, n);
}

template void launch_attention_tensor(const AttentionProblem<half>&, const AttentionSizes&);
template void launch_attention_tensor(const AttentionProblem<bfloat16>&, const AttentionSizes&);

}  // namespace binade::kernels
