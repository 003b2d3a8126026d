// Attention backward on the CPU. Tiles are recomputed from q, k and lse. With enough heads for all
// threads a task owns a head and computes every tile once; else a task owns a block of queries for
// dq, or a block of keys for dk and dv. Each gradient has one writer and one order of additions.
#include <binade/kernels/attention/attention_tiles_internal.h>
#include <binade/kernels/base/parallel.h>

namespace binade::kernels {
namespace {

// delta of queries [i, i + rows) of a head.
template <class T>
void write_delta(const AttentionBackward& a, const TilePlace& at, Compute<T>* delta) {
  const Dims &s = a.out.strides, &g = a.dout.strides;
  const T* out = a.out.as<T>() + at.batch * s[0] + at.head * s[1] + at.i * s[2];
  const T* dout = a.dout.as<T>() + at.batch * g[0] + at.head * g[1] + at.i * g[2];
  const int64_t width = a.out.size(3);
  if (s[3] == 1 && g[3] == 1) {
    return attention_delta_best(AttentionDelta{.dtype = a.out.dtype,
                                               .out = out,
                                               .dout = dout,
                                               .out_stride = s[2],
                                               .dout_stride = g[2],
                                               .rows = at.rows,
                                               .width = width,
                                               .delta = delta});
  }
  for (int64_t i = 0; i < at.rows; ++i) {
    Compute<T> sum = 0;
    for (int64_t d = 0; d < width; ++d) {
      sum += static_cast<Compute<T>>(out[i * s[2] + d * s[3]]) *
             static_cast<Compute<T>>(dout[i * g[2] + d * g[3]]);
    }
    delta[i] = sum;
  }
}

// delta = sum(dout out) of every query: [batch, heads, queries].
template <class T>
void write_delta(const AttentionBackward& a, const AttentionSizes& n, Compute<T>* delta) {
  const int64_t grain = 8192 / (n.value_size + 1) + 1, blocks = (n.queries + grain - 1) / grain;
  parallel_for(n.batch * n.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / blocks, i = task % blocks * grain;
      const int64_t rows = std::min(grain, n.queries - i);
      write_delta<T>(a, TilePlace{head / n.heads, head % n.heads, i, rows, 0, 0},
                     delta + head * n.queries + i);
    }
  });
}

class Backward {
 public:
  Backward(const AttentionBackward& a, const AttentionSizes& n, const std::byte* delta)
      : a_(a),
        n_(n),
        delta_(delta),
        memory_(a.q.dtype, n),
        compute_(memory_.compute()),
        scores_(tile()),
        gradients_(tile()),
        bias_(memory_.take(kQueryRows * kKeyRows)) {}

  // Computes dq of queries [i, i + rows).
  void query_block(TilePlace at) {
    const Matrix sum = zeros(kQueryRows, n_.size);
    std::byte* buffer = memory_.take(kKeyRows * n_.size);
    for (at.j = 0; at.j < n_.keys; at.j += kKeyRows) {
      if (hidden(a_.visible, at)) {
        break;
      }
      at.cols = seen_columns(a_.visible, at, std::min(kKeyRows, n_.keys - at.j));
      make_tile(at);
      const Matrix k =
          memory_.in_compute(matrix_of(a_.k, at.batch, at.head, at.j), buffer, at.cols, n_.size);
      memory_.multiply(gradients_, k, sum, {at.rows, n_.size, at.cols}, true,
                       seen_part(a_.visible, at, Triangular::a));
    }
    store(sum, a_.dq, at, at.i, at.rows, a_.scale);
  }

  // Computes dk and dv of keys [j, j + cols).
  void key_block(TilePlace at) {
    take_key_sums();
    add_keys(at, {});
  }

  // Computes dq, dk and dv of a head; `memory` is [queries, size] in the compute dtype, for dq.
  void whole_head(int64_t batch, int64_t head, std::byte* memory) {
    take_key_sums();
    const Matrix dq = dense_matrix(memory, compute_, n_.size);
    clear(dq, n_.queries * n_.size);
    for (int64_t j = 0; j < n_.keys; j += kKeyRows) {
      add_keys({batch, head, 0, 0, j, std::min(kKeyRows, n_.keys - j)}, dq);
    }
    store(dq, a_.dq, {batch, head, 0, 0, 0, 0}, 0, n_.queries, a_.scale);
  }

  // Computes dmask of queries [i, i + rows) and all keys, summed over the batch or the heads if
  // that size of dmask is 1; at.batch and at.head index dmask.
  void mask_block(TilePlace at) {
    const int64_t batch = at.batch, head = at.head;
    const int64_t batches = a_.dmask.size(0) == 1 ? n_.batch : 1;
    const int64_t heads = a_.dmask.size(1) == 1 ? n_.heads : 1;
    const Matrix sum = tile();
    for (at.j = 0; at.j < n_.keys; at.j += kKeyRows) {
      at.cols = std::min(kKeyRows, n_.keys - at.j);
      clear(sum, kQueryRows * kKeyRows);
      for (int64_t one = 0; one < batches * heads && !hidden(a_.visible, at); ++one) {
        at.batch = batch + one / heads;
        at.head = head + one % heads;
        make_tile(at);
        add_tile(sum, at);
      }
      at.batch = batch;
      at.head = head;
      Matrix target = matrix_of(a_.dmask, batch, head, at.i);
      target.data += at.j * target.column * static_cast<int64_t>(size_of(target.dtype));
      convert(sum, target, at.rows, at.cols);
    }
  }

 private:
  Matrix tile() { return dense_matrix(memory_.take(kQueryRows * kKeyRows), compute_, kKeyRows); }
  void clear(const Matrix& m, int64_t count) const {
    std::fill_n(m.data, static_cast<size_t>(count) * size_of(compute_), std::byte{0});
  }
  Matrix zeros(int64_t rows, int64_t width) {
    const Matrix m = dense_matrix(memory_.take(rows * width), compute_, width);
    clear(m, rows * width);
    return m;
  }

  // Takes memory for the accumulators and buffers of add_keys.
  void take_key_sums() {
    dk_ = dense_matrix(memory_.take(kKeyRows * n_.size), compute_, n_.size);
    dv_ = dense_matrix(memory_.take(kKeyRows * n_.value_size), compute_, n_.value_size);
    keys_ = memory_.take(kKeyRows * n_.size);
    queries_ = memory_.take(kQueryRows * n_.size);
    upstream_ = memory_.take(kQueryRows * n_.value_size);
  }

  // Computes dk and dv of keys [j, j + cols), and adds their part of dq if `dq` has memory.
  void add_keys(TilePlace at, const Matrix& dq) {
    clear(dk_, kKeyRows * n_.size);
    clear(dv_, kKeyRows * n_.value_size);
    const int64_t cols = at.cols;
    const Matrix k =
        dq.data ? memory_.in_compute(matrix_of(a_.k, at.batch, at.head, at.j), keys_, cols, n_.size)
                : Matrix{};
    for (at.i = 0; at.i < n_.queries; at.i += kQueryRows) {
      at.rows = std::min(kQueryRows, n_.queries - at.i);
      if (hidden(a_.visible, at)) {
        continue;
      }
      at.cols = seen_columns(a_.visible, at, cols);
      make_tile(at);
      if (dq.data) {
        Matrix rows = dq;
        rows.data += at.i * dq.row * static_cast<int64_t>(size_of(compute_));
        memory_.multiply(gradients_, k, rows, {at.rows, n_.size, at.cols}, true,
                         seen_part(a_.visible, at, Triangular::a));
      }
      if (a_.dv) {
        drop_weights(a_.dropout, n_, at, scores_);
        const Matrix dout = memory_.in_compute(matrix_of(a_.dout, at.batch, at.head, at.i),
                                               upstream_, at.rows, n_.value_size);
        memory_.multiply(scores_.transposed(), dout, dv_, {at.cols, n_.value_size, at.rows}, true,
                         seen_part(a_.visible, at, Triangular::a_transposed));
      }
      if (a_.dk) {
        const Matrix q = memory_.in_compute(matrix_of(a_.q, at.batch, at.head, at.i), queries_,
                                            at.rows, n_.size);
        memory_.multiply(gradients_.transposed(), q, dk_, {at.cols, n_.size, at.rows}, true,
                         seen_part(a_.visible, at, Triangular::a_transposed));
      }
    }
    store(dk_, a_.dk, at, at.j, cols, a_.scale);
    store(dv_, a_.dv, at, at.j, cols, 1);
  }

  // Computes the weights before dropout (scores_) and ds (gradients_).
  void make_tile(const TilePlace& at) {
    const Matrix q = matrix_of(a_.q, at.batch, at.head, at.i);
    const Matrix k = matrix_of(a_.k, at.batch, at.head, at.j);
    const Matrix v = matrix_of(a_.v, at.batch, at.head, at.j);
    const Matrix dout = matrix_of(a_.dout, at.batch, at.head, at.i);
    const Seen seen = seen_part(a_.visible, at, Triangular::result);
    memory_.multiply(q, k.transposed(), scores_, {at.rows, at.cols, n_.size}, false, seen);
    memory_.multiply(dout, v.transposed(), gradients_, {at.rows, at.cols, n_.value_size}, false,
                     seen);
    drop_weights(a_.dropout, n_, at, gradients_);
    const int64_t row = ((at.batch * n_.heads + at.head) * n_.queries + at.i) *
                        static_cast<int64_t>(size_of(compute_));
    attention_gradient_best(
        AttentionGradient{.tile = attention_tile(a_.visible, at, a_.scale, compute_, bias_),
                          .scores = scores_.data,
                          .gradients = gradients_.data,
                          .lse = a_.lse.data + row,
                          .delta = delta_ + row});
  }

  template <class C>
  void add_as(const Matrix& sum, const TilePlace& at) const {
    C* to = reinterpret_cast<C*>(sum.data);
    const C* from = reinterpret_cast<const C*>(gradients_.data);
    for (int64_t i = 0; i < at.rows; ++i) {
      for (int64_t j = i * kKeyRows; j < i * kKeyRows + at.cols; ++j) {
        to[j] += from[j];
      }
    }
  }
  void add_tile(const Matrix& sum, const TilePlace& at) const {
    compute_ == DType::f64 ? add_as<double>(sum, at) : add_as<float>(sum, at);
  }

  template <class C>
  static void scale_by(const Matrix& m, int64_t count, double factor) {
    C* values = reinterpret_cast<C*>(m.data);
    for (int64_t i = 0; i < count; ++i) {
      values[i] *= static_cast<C>(factor);
    }
  }
  // Writes factor * sum to rows [first, first + rows) of the head's target; sum is dense.
  void store(const Matrix& sum, const View& target, const TilePlace& at, int64_t first,
             int64_t rows, double factor) const {
    if (!target) {
      return;
    }
    const int64_t width = sum.row;
    compute_ == DType::f64 ? scale_by<double>(sum, rows * width, factor)
                           : scale_by<float>(sum, rows * width, factor);
    convert(sum, matrix_of(target, at.batch, at.head, first), rows, width);
  }

  const AttentionBackward& a_;
  const AttentionSizes& n_;
  const std::byte* delta_;
  TileMemory memory_;
  DType compute_;
  Matrix scores_, gradients_;
  std::byte* bias_;
  Matrix dk_{}, dv_{};
  std::byte *keys_ = nullptr, *queries_ = nullptr, *upstream_ = nullptr;
};

// Calls f(place of the block) for every block of `rows` rows of `length` in every head.
template <class F>
void for_blocks(const Dims& heads, int64_t length, int64_t rows, int64_t grain, const F& f) {
  const int64_t blocks = (length + rows - 1) / rows;
  parallel_for(heads[0] * heads[1] * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / blocks, first = task % blocks * rows;
      f(head / heads[1], head % heads[1], first, std::min(rows, length - first));
    }
  });
}

}  // namespace

void cpu::attention_backward(const AttentionBackward& a) {
  const AttentionSizes n = checked_sizes(a);
  const DType compute = compute_dtype(a.q.dtype);
  const Workspace delta(static_cast<size_t>(n.batch * n.heads * n.queries) * size_of(compute));
  dispatch_floating("attention backward", a.q.dtype,
                    [&]<class T>(Type<T>) { write_delta<T>(a, n, delta.as<Compute<T>>()); });
  const Dims heads{n.batch, n.heads};
  // Decided by shape alone: enough heads for the threads of most machines, and a dq that fits into
  // L2.
  const bool by_head = n.batch * n.heads >= 8 && n.queries * n.size <= 65536 && a.dq && a.dk;
  if (by_head) {
    parallel_for(n.batch * n.heads, 1, [&](int64_t begin, int64_t end) {
      const Workspace dq(static_cast<size_t>(n.queries * n.size) * size_of(compute));
      for (int64_t head = begin; head < end; ++head) {
        Backward(a, n, delta.as<std::byte>())
            .whole_head(head / n.heads, head % n.heads, dq.as<std::byte>());
      }
    });
  }
  const int64_t grain = attention_grain(n, kQueryRows, n.keys);
  if (a.dq && !by_head) {
    for_blocks(heads, n.queries, kQueryRows, grain,
               [&](int64_t batch, int64_t head, int64_t i, int64_t rows) {
                 Backward(a, n, delta.as<std::byte>()).query_block({batch, head, i, rows, 0, 0});
               });
  }
  if ((a.dk || a.dv) && !by_head) {
    for_blocks(heads, n.keys, kKeyRows, attention_grain(n, kKeyRows, n.queries),
               [&](int64_t batch, int64_t head, int64_t j, int64_t cols) {
                 Backward(a, n, delta.as<std::byte>()).key_block({batch, head, 0, 0, j, cols});
               });
  }
  if (a.dmask) {
    for_blocks({a.dmask.size(0), a.dmask.size(1)}, n.queries, kQueryRows, 1,
               [&](int64_t batch, int64_t head, int64_t i, int64_t rows) {
                 Backward(a, n, delta.as<std::byte>()).mask_block({batch, head, i, rows, 0, 0});
               });
  }
}

}  // namespace binade::kernels
