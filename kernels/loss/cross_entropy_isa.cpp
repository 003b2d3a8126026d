#include <binade/kernels/base/row_max_internal.h>
#include <binade/kernels/loss/cross_entropy_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
Compute<T> scalar(const T* p) {
  return load_part(p, 1)[0];
}

template <class T>
void forward_row(const CrossEntropyRows& a, int64_t row) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.logits) + row * a.stride;
  const C* weight = static_cast<const C*>(a.weight);
  const C largest = row_max(x, a.classes);
  const C sum_of_exp = sum_of_blocks<C>(a.classes, [&](int64_t begin, int64_t size) {
    Vector<C> sums[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
      prefetch(x + a.stride + begin + i);
      sums[way()] += lifted_exp(load_some<part()>(x + begin + i, n, -kInfinity<C>) - largest);
    });
    return reduce_add<C>(sums);
  });
  const C log_sum = log(sum_of_exp / kLift<C>);
  static_cast<C*>(a.lse)[row] = largest + log_sum;

  const int64_t target = a.target[row * a.target_stride];
  const bool ignored = target == a.ignore_index;
  const C w = ignored ? 0 : weight ? weight[target] : 1;
  C loss = 0;
  if (!ignored) {
    // Differences from the largest logit keep digits that lse - x would lose.
    const C smoothing = static_cast<C>(a.label_smoothing);
    loss = (1 - smoothing) * w * (largest - scalar(x + target) + log_sum);
    if (smoothing > 0) {
      const C distances = sum_of_blocks<C>(a.classes, [&](int64_t begin, int64_t size) {
        Vector<C> rest{};
        for_vectors<C>(size, [&](auto part, int64_t at, int64_t n) {
          const int64_t i = begin + at;
          const Vector<C> distance = largest - load_some<part()>(x + i, n, largest);
          rest += weight ? distance * load_some<part()>(weight + i, n) : distance;
        });
        return reduce_add<C>(rest);
      });
      const C sum = distances + log_sum * static_cast<C>(a.weight_sum);
      loss += smoothing / static_cast<C>(a.classes) * sum;
    }
  }
  static_cast<C*>(a.row_loss)[row] = loss;
  static_cast<C*>(a.row_weight)[row] = w;
}

template <bool kNontemporal, class T>
void backward_row(const CrossEntropyRowsBackward& a, int64_t row) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.logits) + row * a.stride;
  T* dx = static_cast<T*>(a.dlogits) + row * a.dlogits_stride;
  const C* weight = static_cast<const C*>(a.weight);
  C* p = static_cast<C*>(a.scratch);
  const int64_t target = a.target[row * a.target_stride];
  if (target == a.ignore_index) {
    for_vectors<C>(a.classes, [&](auto part, int64_t i, int64_t n) {
      store_result<kNontemporal, part()>(dx + i, Vector<C>{}, n);
    });
    return;
  }
  const C lse = static_cast<const C*>(a.lse)[row];
  const C sum = sum_of_blocks<C>(a.classes, [&](int64_t begin, int64_t size) {
    Vector<C> sums[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t at, int64_t n) {
      const int64_t i = begin + at;
      prefetch(x + a.stride + i);
      const Vector<C> e = lifted_exp(load_some<part()>(x + i, n, -kInfinity<C>) - lse);
      sums[way()] += e;
      store_some<part()>(p + i, e, n);
    });
    return reduce_add<C>(sums);
  });
  const C scale = static_cast<const C*>(a.row_scale)[row];
  const C smoothing = static_cast<C>(a.label_smoothing);
  const C on_target = (1 - smoothing) * (weight ? weight[target] : 1);
  const C uniform = smoothing / static_cast<C>(a.classes);
  const C total = on_target + uniform * static_cast<C>(a.weight_sum);
  // The saved lse is rounded, which scales the row by up to 1 + eps |lse|; dividing by the sum
  // removes that factor, and that of lifted_exp().
  const C factor = total / sum;
  for_vectors<C>(a.classes, [&](auto part, int64_t i, int64_t n) {
    Vector<C> d = load_some<part()>(p + i, n) * factor;
    if (smoothing > 0) {
      d -= weight ? load_some<part()>(weight + i, n) * uniform : broadcast(uniform);
    }
    if (target >= i && target < i + n) {
      d[target - i] -= on_target;
    }
    store_result<kNontemporal, part()>(dx + i, d * scale, n);
  });
}

}  // namespace

void cross_entropy_rows(const CrossEntropyRows& a) {
  dispatch_floating("cross_entropy", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t row = 0; row < a.rows; ++row) {
      forward_row<T>(a, row);
    }
  });
}

void cross_entropy_rows_backward(const CrossEntropyRowsBackward& a) {
  dispatch_floating("cross_entropy", a.dtype, [&]<class T>(Type<T>) {
    const bool nontemporal =
        a.nontemporal && fits_nontemporal(static_cast<T*>(a.dlogits), a.dlogits_stride, a.classes);
    for (int64_t row = 0; row < a.rows; ++row) {
      nontemporal ? backward_row<true, T>(a, row) : backward_row<false, T>(a, row);
    }
    if (nontemporal) {
      nontemporal_fence();
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
