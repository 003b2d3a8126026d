// Shared by the attention kernels: the operands of one head, the score of a query and a key, and
// the numbering of blocks.
//
// A block owns rows of one side of the score matrix and loops over the other side: queries over
// keys for out and dq, keys over queries for dk and dv. So every result has one writer and one
// order of additions, and no [queries, keys] matrix is written to memory.
#pragma once
#include <binade/kernels/attention/attention_internal.h>
#include <binade/kernels/base/philox.h>
#include <binade/kernels/random/random_values.h>
#include <binade/kernels/cuda/row_team.cuh>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/gemm/gemm_loader.cuh>

namespace binade::kernels {

// A 4-d view [batch, heads, rows, columns].
template <class T>
struct HeadArray {
  T* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0, column_stride = 0;
  int64_t rows = 0;
  int columns = 0;
  bool vector = false;  // 16-byte chunks along the columns are aligned

  __device__ __forceinline__ T* head(int64_t batch, int64_t head) const {
    return data + batch * batch_stride + head * head_stride;
  }
  __device__ __forceinline__ int64_t offset(int64_t row, int64_t column) const {
    return row * row_stride + column * column_stride;
  }
};

// Dropout of the weights, the device's form of kernels::AttentionDropout.
struct WeightDropout {
  uint64_t seed = 0, offset = 0;
  const int64_t* advance = nullptr;
  float p = 0;       // 0: none
  double scale = 1;  // of the kept weights
};

enum class MaskKind : uint8_t { none, keep, add };

template <class T>
struct AttentionProblem {
  using C = Compute<T>;
  HeadArray<const T> q, k, v, out, dout;
  HeadArray<const std::byte> mask;  // bool or T, by kind
  HeadArray<T> result, dq, dk, dv, dmask;
  MaskKind mask_kind = MaskKind::none;
  bool causal = false;
  C scale = 1;
  WeightDropout dropout;
  C* lse = nullptr;    // [batch, heads, queries]
  C* delta = nullptr;  // likewise
  int64_t heads = 1;

  __device__ __forceinline__ int64_t queries() const { return q.rows; }
  __device__ __forceinline__ int64_t keys() const { return k.rows; }
  __device__ __forceinline__ int64_t row(int64_t batch, int64_t head, int64_t query) const {
    return (batch * heads + head) * queries() + query;
  }
};

// Columns [begin, end) of a tile.
struct ColumnRange {
  int begin, end;
  __device__ __forceinline__ bool has(int column) const { return column >= begin && column < end; }
};

// The scores of one head.
template <class T>
struct Scorer {
  using C = Compute<T>;
  const AttentionProblem<T>& p;
  const std::byte* mask;

  __device__ Scorer(const AttentionProblem<T>& problem, int64_t batch, int64_t head)
      : p(problem), mask(problem.mask.data) {
    if (p.mask_kind != MaskKind::none) {
      constexpr auto kSize = static_cast<int64_t>(sizeof(T));
      const int64_t first = batch * p.mask.batch_stride + head * p.mask.head_stride;
      mask += first * (p.mask_kind == MaskKind::keep ? 1 : kSize);
    }
  }
  // Which of the `width` columns from `first` are visible to a row, apart from the mask. Rows are
  // queries and columns keys; with kOwnKeys rows are keys and columns queries.
  template <bool kOwnKeys>
  __device__ __forceinline__ ColumnRange columns(int64_t row, int64_t first, int width) const {
    if (row >= (kOwnKeys ? p.keys() : p.queries())) {
      return {0, 0};
    }
    if (kOwnKeys) {
      return {p.causal ? clamp_count(row - first, width) : 0,
              clamp_count(p.queries() - first, width)};
    }
    const int64_t end = p.causal && row + 1 < p.keys() ? row + 1 : p.keys();
    return {0, clamp_count(end - first, width)};
  }
  // The score, from the product q k^T.
  __device__ __forceinline__ C operator()(C product, int64_t query, int64_t key) const {
    const C score = product * p.scale;
    if (p.mask_kind == MaskKind::none) {
      return score;
    }
    const int64_t at = p.mask.offset(query, key);
    if (p.mask_kind == MaskKind::keep) {
      return reinterpret_cast<const uint8_t*>(mask)[at] ? score
                                                        : -std::numeric_limits<C>::infinity();
    }
    return score + static_cast<C>(reinterpret_cast<const T*>(mask)[at]);
  }
};

// Which weights of one head dropout keeps.
struct DropoutMask {
  uint64_t seed, first;  // first: the position of query 0 and key 0
  int64_t keys;
  float p;

  template <class T>
  __device__ DropoutMask(const AttentionProblem<T>& problem, int64_t batch, int64_t head)
      : seed(problem.dropout.seed),
        first(problem.dropout.offset +
              static_cast<uint64_t>((problem.dropout.advance ? *problem.dropout.advance : 0) +
                                    problem.row(batch, head, 0) * problem.keys())),
        keys(problem.keys()),
        p(problem.dropout.p) {}

  __device__ __forceinline__ bool operator()(int64_t query, int64_t key) const {
    const uint64_t at = position(query, key);
    return keeps(philox::generate(seed, at / 4), at);
  }
  // The same for `key` and key + 1, as bits 0 and 1. Both usually come from one Philox block.
  __device__ __forceinline__ uint32_t pair(int64_t query, int64_t key) const {
    const uint64_t at = position(query, key);
    philox::Block block = philox::generate(seed, at / 4);
    const uint32_t even = keeps(block, at);
    if (at % 4 == 3) {
      block = philox::generate(seed, at / 4 + 1);
    }
    return even | uint32_t{keeps(block, at + 1)} << 1;
  }

 private:
  __device__ __forceinline__ uint64_t position(int64_t query, int64_t key) const {
    return first + static_cast<uint64_t>(query * keys + key);
  }
  __device__ __forceinline__ bool keeps(const philox::Block& block, uint64_t at) const {
    const uint32_t low = at & 1 ? block[1] : block[0], high = at & 1 ? block[3] : block[2];
    return uniform_value(at & 2 ? high : low) >= p;
  }
};

// exp(score - lse).
template <class T, class C>
__device__ __forceinline__ C probability(C score, C lse) {
  return dev::exp_for<T>(score - lse);
}

// Running maximum and sum of exp(score - max) of one query.
template <class C>
struct SoftmaxState {
  C max = -std::numeric_limits<C>::infinity(), sum = 0;

  // The value to subtract from scores: 0 while all were -inf, since inf - inf is NaN.
  __device__ __forceinline__ C base() const {
    return max == -std::numeric_limits<C>::infinity() ? C(0) : max;
  }
  // Raises the maximum to that of a tile; returns the factor that rescales the earlier sums.
  template <class T>
  __device__ __forceinline__ C raise(C tile_max) {
    const C before = max;
    max = tile_max > max ? tile_max : max;
    const C factor = before == max ? C(1) : dev::exp_for<T>(before - base());
    sum *= factor;
    return factor;
  }
  __device__ __forceinline__ bool blind() const { return sum == C(0); }
  __device__ __forceinline__ C inverse() const { return blind() ? C(0) : C(1) / sum; }
  __device__ __forceinline__ C lse() const {
    return blind() ? std::numeric_limits<C>::infinity() : max + std::log(sum);
  }
};

// Block `index` of the grid as (batch, head, first row).
struct BlockPlace {
  int64_t batch, head, first;

  __device__ BlockPlace(int64_t index, int64_t blocks_per_head, int rows, int64_t heads)
      : batch(index / blocks_per_head / heads),
        head(index / blocks_per_head % heads),
        first(index % blocks_per_head * rows) {}
};

// Sets up the parts of a problem that forward and backward share.
template <class T>
HeadArray<T> head_array(const View& v) {
  HeadArray<T> a;
  if (v) {
    a.rows = v.size(2);
    a.columns = static_cast<int>(v.size(3));
  }
  if (v && v.numel > 0) {
    const Dims& s = v.strides;
    a = {reinterpret_cast<T*>(v.data), s[0], s[1], s[2], s[3], v.size(2),
         static_cast<int>(v.size(3))};
    const int64_t chunk = dev::kVectorOf<std::remove_const_t<T>>;
    const auto steps = [&](int d) { return v.size(d) == 1 || s[d] % chunk == 0; };
    a.vector = (s[3] == 1 || v.size(3) == 1) && steps(0) && steps(1) && steps(2) &&
               reinterpret_cast<uintptr_t>(v.data) % 16 == 0;
  }
  return a;
}

template <class T>
void set_visible(AttentionProblem<T>& p, const AttentionVisibility& visible) {
  p.causal = visible.causal;
  if (visible.mask) {
    p.mask = head_array<const std::byte>(visible.mask);
    p.mask_kind = visible.mask.dtype == DType::boolean ? MaskKind::keep : MaskKind::add;
  }
}

template <class T>
void set_dropout(AttentionProblem<T>& p, const AttentionDropout& dropout) {
  p.dropout = {.seed = dropout.seed,
               .offset = dropout.offset,
               .advance = dropout.advance.as<int64_t>(),
               .p = static_cast<float>(dropout.p),
               .scale = dropout.p < 1 ? 1 / (1 - dropout.p) : 0};
}

// The number of blocks of `rows` rows that cover `length` rows of every head.
unsigned attention_blocks(const AttentionSizes& n, int64_t length, int rows);

// Launchers by decomposition: attention_simt.cu, attention_tensor.cu, attention_tensor_backward.cu.
template <class T>
void launch_attention_simt(const AttentionProblem<T>& p, const AttentionSizes& n);
template <class T>
void launch_attention_simt_backward(const AttentionProblem<T>& p, const AttentionSizes& n);
template <class T>
void launch_attention_tensor(const AttentionProblem<T>& p, const AttentionSizes& n);
template <class T>
void launch_attention_tensor_backward(const AttentionProblem<T>& p, const AttentionSizes& n);
template <class T>
void launch_attention_mask_gradient(const AttentionProblem<T>& p, const AttentionSizes& n);

}  // namespace binade::kernels
