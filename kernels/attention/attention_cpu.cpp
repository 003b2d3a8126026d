// Attention forward on the CPU: a task is a block of queries of one head. It loops over blocks of
// keys with a running maximum and sum per query.
#include <binade/kernels/attention/attention_tiles_internal.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/random/random_internal.h>
#include <binade/kernels/random/random_isa_internal.h>

#include <cmath>
#include <limits>

namespace binade::kernels {
namespace {

template <class T, class C>
void write_bias(const View& mask, const TilePlace& at, C* bias) {
  const Dims& s = mask.strides;
  const T* first = mask.as<T>() + at.batch * s[0] + at.head * s[1] + at.i * s[2] + at.j * s[3];
  for (int64_t i = 0; i < at.rows; ++i) {
    for (int64_t j = 0; j < at.cols; ++j) {
      const T value = first[i * s[2] + j * s[3]];
      if constexpr (std::is_same_v<T, bool>) {
        bias[i * kKeyRows + j] = value ? C(0) : -std::numeric_limits<C>::infinity();
      } else {
        bias[i * kKeyRows + j] = static_cast<C>(value);
      }
    }
  }
}

// out = accumulated / sum and lse = max + log(sum) of one block.
template <class C>
void finish(const AttentionForward& a, const TilePlace& at, C* accumulated, const C* max,
            const C* sum) {
  const int64_t width = a.v.size(3);
  C* lse = a.lse.as<C>() + (at.batch * a.q.size(1) + at.head) * a.q.size(2) + at.i;
  for (int64_t i = 0; i < at.rows; ++i) {
    const bool blind = sum[i] == 0;
    const C scale = blind ? C(0) : 1 / sum[i];
    for (int64_t d = 0; d < width; ++d) {
      accumulated[i * width + d] *= scale;
    }
    lse[i] = blind ? std::numeric_limits<C>::infinity() : max[i] + std::log(sum[i]);
  }
  const DType compute = dtype_of<C>;
  convert(dense_matrix(accumulated, compute, width), matrix_of(a.out, at.batch, at.head, at.i),
          at.rows, width);
}

template <class C>
void forward_block(const AttentionForward& a, const AttentionSizes& n, TilePlace at) {
  TileMemory memory(a.q.dtype, n);
  const Matrix scores = dense_matrix(memory.take(kQueryRows * kKeyRows), dtype_of<C>, kKeyRows);
  std::byte* bias = memory.take(kQueryRows * kKeyRows);
  std::byte* values = memory.take(kKeyRows * n.value_size);
  C* accumulated = reinterpret_cast<C*>(memory.take(kQueryRows * n.value_size));
  C *max = reinterpret_cast<C*>(memory.take(kQueryRows)),
    *sum = reinterpret_cast<C*>(memory.take(kQueryRows));
  std::fill_n(max, at.rows, -std::numeric_limits<C>::infinity());
  std::fill_n(sum, at.rows, C(0));
  std::fill_n(accumulated, at.rows * n.value_size, C(0));
  const Matrix q = matrix_of(a.q, at.batch, at.head, at.i);
  for (at.j = 0; at.j < n.keys; at.j += kKeyRows) {
    if (hidden(a.visible, at)) {
      break;
    }
    at.cols = seen_columns(a.visible, at, std::min(kKeyRows, n.keys - at.j));
    const Matrix k = matrix_of(a.k, at.batch, at.head, at.j);
    memory.multiply(q, k.transposed(), scores, {at.rows, at.cols, n.size}, false,
                    seen_part(a.visible, at, Triangular::result));
    attention_softmax_best(
        AttentionSoftmax{.tile = attention_tile(a.visible, at, a.scale, memory.compute(), bias),
                         .scores = scores.data,
                         .max = max,
                         .sum = sum,
                         .accumulated = accumulated,
                         .width = n.value_size});
    drop_weights(a.dropout, n, at, scores);
    const Matrix v =
        memory.in_compute(matrix_of(a.v, at.batch, at.head, at.j), values, at.cols, n.value_size);
    memory.multiply(scores, v, dense_matrix(accumulated, dtype_of<C>, n.value_size),
                    {at.rows, n.value_size, at.cols}, true,
                    seen_part(a.visible, at, Triangular::a));
  }
  finish(a, at, accumulated, max, sum);
}

}  // namespace

AttentionTile attention_tile(const AttentionVisibility& visible, const TilePlace& at, double scale,
                             DType compute, std::byte* bias) {
  const View& mask = visible.mask;
  if (mask) {
    dispatch("attention", mask.dtype, [&]<class T>(Type<T>) {
      compute == DType::f64 ? write_bias<T>(mask, at, reinterpret_cast<double*>(bias))
                            : write_bias<T>(mask, at, reinterpret_cast<float*>(bias));
    });
  }
  return {.compute = compute,
          .rows = at.rows,
          .cols = at.cols,
          .row_stride = kKeyRows,
          .causal = visible.causal,
          .visible = at.i - at.j + 1,
          .bias = mask ? bias : nullptr,
          .scale = scale};
}

void drop_weights(const AttentionDropout& dropout, const AttentionSizes& n, const TilePlace& at,
                  const Matrix& tile) {
  if (dropout.p == 0) {
    return;
  }
  const uint64_t position = position_of(dropout.offset, dropout.advance);
  for (int64_t i = 0; i < at.rows; ++i) {
    const int64_t query = (at.batch * n.heads + at.head) * n.queries + at.i + i;
    std::byte* row = tile.data + i * tile.row * static_cast<int64_t>(size_of(tile.dtype));
    dropout_block_best(
        DropoutBlock{.p = dropout.p,
                     .seed = dropout.seed,
                     .position = position + static_cast<uint64_t>(query * n.keys + at.j),
                     .dtype = tile.dtype,
                     .x = row,
                     .y = row,
                     .n = at.cols});
  }
}

int64_t attention_grain(const AttentionSizes& n, int64_t rows, int64_t other) {
  constexpr double kFlops = 2e6;
  const double task = 2.0 * static_cast<double>(rows) * static_cast<double>(other + 1) *
                      static_cast<double>(n.size + n.value_size);
  return static_cast<int64_t>(kFlops / (task + 1)) + 1;
}

void cpu::attention_forward(const AttentionForward& a) {
  const AttentionSizes n = checked_sizes(a);
  const int64_t blocks = (n.queries + kQueryRows - 1) / kQueryRows;
  parallel_for(n.batch * n.heads * blocks, attention_grain(n, kQueryRows, n.keys),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t head = task / blocks, i = task % blocks * kQueryRows;
                   const TilePlace at{.batch = head / n.heads,
                                      .head = head % n.heads,
                                      .i = i,
                                      .rows = std::min(kQueryRows, n.queries - i),
                                      .j = 0,
                                      .cols = 0};
                   a.q.dtype == DType::f64 ? forward_block<double>(a, n, at)
                                           : forward_block<float>(a, n, at);
                 }
               });
}

}  // namespace binade::kernels
