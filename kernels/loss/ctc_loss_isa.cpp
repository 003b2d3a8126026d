// ctc_loss for one sample: one loop over the states per time step, which vectorises. Rows of states
// have two entries of minus infinity before them (forward) or after them (backward), so that the
// loops need no special cases at the ends.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/base/pointwise_math.h>
#include <binade/kernels/loss/ctc_loss_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C>
constexpr C kMinusInfinity = static_cast<C>(-__builtin_inf());

// log(e^a + e^b + e^c); minus infinities are allowed, and a NaN gives NaN.
template <class C>
inline C log_sum(C a, C b, C c) {
  C top = a > b ? a : b;
  top = top > c ? top : c;
  const C base = top == kMinusInfinity<C> ? C(0) : top;
  return base + math_log(math_exp(a - base) + math_exp(b - base) + math_exp(c - base));
}

template <class C>
struct Sample {
  const CtcSample& s;
  const C* skip;
  C *previous, *next, *emission, *posterior, *row;

  explicit Sample(const CtcSample& sample) : s(sample), skip(static_cast<const C*>(sample.skip)) {
    previous = static_cast<C*>(sample.scratch);
    next = previous + s.states + 2;
    emission = next + s.states + 2;
    posterior = emission + s.states + 2;
    row = posterior + s.states + 2;
  }
  const C* log_probs(int64_t t) const {
    return static_cast<const C*>(s.log_probs) + t * s.time_stride;
  }
  C* alpha(int64_t t) const { return static_cast<C*>(s.alpha) + t * s.alpha_stride; }
  void gather_emission(int64_t t) const {
    const C* from = log_probs(t);
    for (int64_t i = 0; i < s.states; ++i) {
      emission[i] = from[s.state_class[i]];
    }
  }
};

template <class C>
double forward(const CtcSample& sample) {
  const Sample<C> run(sample);
  const int64_t states = sample.states;
  if (sample.times == 0) {
    return states == 1 ? 0 : __builtin_inf();
  }
  C *before = run.previous, *now = run.next;
  for (int64_t i = 0; i < states + 2; ++i) {
    before[i] = now[i] = kMinusInfinity<C>;
  }
  run.gather_emission(0);
  before[2] = run.emission[0];
  if (states > 1) {
    before[3] = run.emission[1];
  }
  __builtin_memcpy(run.alpha(0), before + 2, static_cast<size_t>(states) * sizeof(C));
  for (int64_t t = 1; t < sample.times; ++t) {
    run.gather_emission(t);
#pragma GCC ivdep
    for (int64_t i = 0; i < states; ++i) {
      now[i + 2] = log_sum(before[i + 2], before[i + 1], before[i] + run.skip[i]) + run.emission[i];
    }
    __builtin_memcpy(run.alpha(t), now + 2, static_cast<size_t>(states) * sizeof(C));
    C* swap = before;
    before = now;
    now = swap;
  }
  const C last = before[states + 1], but_one = states > 1 ? before[states] : kMinusInfinity<C>;
  return -static_cast<double>(log_sum(last, but_one, kMinusInfinity<C>));
}

// posterior_s = exp(alpha_s + beta_s), normalised; `values` holds the logarithms.
template <class C>
void normalise(C* values, int64_t n) {
  C top = values[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) {
    top = values[i] > top ? values[i] : top;
  }
  for (int64_t i = 0; i < n; ++i) {
    values[i] = math_exp(values[i] - top);
  }
  for (int64_t i = 0; i < n; ++i) {
    sum += values[i];
  }
  for (int64_t i = 0; i < n; ++i) {
    values[i] /= sum;
  }
}

template <class T, class C>
void store_row(const C* row, std::byte* to, int64_t stride, int64_t n) {
  if constexpr (kSame<T, C>) {
    scatter<C>(row, to, stride, n);
  } else {
    for (int64_t i = 0; i < n; i += kBlockSize) {
      const int64_t part = n - i < kBlockSize ? n - i : kBlockSize;
      store_block<T>(row + i, to + i * stride, stride, part);
    }
  }
}

template <class T, class C>
void backward(const CtcSample& sample, const CtcGradient& gradient) {
  const Sample<C> run(sample);
  const int64_t states = sample.states;
  const C scale = static_cast<C>(gradient.scale);
  C *beta = run.previous, *follow = run.next;
  for (int64_t i = 0; i < states + 2; ++i) {
    beta[i] = i < states && i + 2 >= states ? C(0) : kMinusInfinity<C>;
    follow[i] = kMinusInfinity<C>;
  }
  for (int64_t t = sample.times - 1; t >= 0; --t) {
    if (t + 1 < sample.times) {  // emission still belongs to t + 1
      for (int64_t i = 0; i < states; ++i) {
        follow[i] = beta[i] + run.emission[i];
      }
#pragma GCC ivdep
      for (int64_t i = 0; i < states; ++i) {
        const C jump = i + 2 < states ? run.skip[i + 2] : kMinusInfinity<C>;
        beta[i] = log_sum(follow[i], follow[i + 1], follow[i + 2] + jump);
      }
    }
    run.gather_emission(t);
    const C* alpha = run.alpha(t);
    for (int64_t i = 0; i < states; ++i) {
      run.posterior[i] = alpha[i] + beta[i];
    }
    normalise(run.posterior, states);
    const C* log_probs = run.log_probs(t);
    for (int64_t c = 0; c < sample.classes; ++c) {
      run.row[c] = math_exp(log_probs[c]);
    }
    for (int64_t i = 0; i < states; ++i) {
      run.row[sample.state_class[i]] -= run.posterior[i];
    }
    for (int64_t c = 0; c < sample.classes; ++c) {
      run.row[c] *= scale;
    }
    store_row<T>(run.row, gradient.dlogits + t * gradient.time_stride, gradient.class_stride,
                 sample.classes);
  }
}

}  // namespace

void ctc_forward(const CtcSample& sample, double* nll) {
  *nll = sample.compute == DType::f64 ? forward<double>(sample) : forward<float>(sample);
}

void ctc_backward(const CtcSample& sample, const CtcGradient& gradient) {
  switch (gradient.dtype) {
    case DType::f64: return backward<double, double>(sample, gradient);
    case DType::f32: return backward<float, float>(sample, gradient);
    case DType::f16: return backward<half, float>(sample, gradient);
    default: return backward<bfloat16, float>(sample, gradient);
  }
}

}  // namespace binade::kernels::BINADE_ISA
