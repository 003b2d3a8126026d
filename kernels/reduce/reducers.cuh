// The reducers of the reduction kernels (reduce_kernels.cuh). A reducer defines
//   State<C>    what it keeps of the terms so far
//   none()      the state of no terms
//   of<T>(x)    the state of the N terms of a vector; the first is number `index` of its sequence
//   combine()   the state of two sets of terms together
//   finish()    the results: y, and for some reducers aux
// Terms and results have type C = Compute<T>, or an integer type.
#pragma once
#include <binade/kernels/reduce/reduce_internal.h>
#include <binade/kernels/cuda/accumulator.cuh>
#include <binade/kernels/cuda/row_team.cuh>

namespace binade::kernels::dev {

// For plain and negative terms this function is its own inverse. Integers are negated as ~x, which
// also reverses their order and cannot overflow.
template <class C>
__device__ __forceinline__ C term_of(Term term, C x) {
  if constexpr (std::is_integral_v<C>) {
    return term == Term::negative ? static_cast<C>(~x) : x;
  } else {
    return term == Term::plain      ? x
           : term == Term::negative ? -x
           : term == Term::absolute ? std::abs(x)
                                    : x * x;
  }
}

struct Product {
  template <class T>
  __device__ static T combine(T a, T b) {
    return a * b;
  }
};

// One value, combined by an operation of block_reduce.cuh; divided for the mean.
template <class Op>
struct Scalar {
  static constexpr bool kAux = false;
  static constexpr bool kOrder = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
  static constexpr int kLevels = kOrder ? 1 : 3;
  template <class C>
  using State = C;
  template <class C>
  using Aux = C;

  template <class C>
  __device__ static C none() {
    using Limits = std::numeric_limits<C>;
    if constexpr (!kOrder) {
      return std::is_same_v<Op, Product> ? C(1) : C(0);
    } else if constexpr (std::is_same_v<Op, Max>) {
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    } else {
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    }
  }
  template <class T, class C, int N>
  __device__ static C of(const C (&x)[N], Term, int64_t) {
    return combine_all<Op>(x);
  }
  template <class C>
  __device__ static C combine(C a, C b) {
    return Op::combine(a, b);
  }
  template <class C>
  __device__ static void finish(C state, const Reading& reading, C& y, C&) {
    y = state;
    if constexpr (std::is_floating_point_v<C>) {
      y = reading.divisor > 0 ? state / static_cast<C>(reading.divisor) : state;
    }
  }
};

// The sum of |x| or x^2, and its root. In double, where the square of every float is in range.
struct PowerSum {
  static constexpr bool kAux = false;
  static constexpr int kLevels = 3;
  template <class C>
  using State = double;
  template <class C>
  using Aux = C;

  template <class C>
  __device__ static double none() {
    return 0;
  }
  template <class T, class C, int N>
  __device__ static double of(const C (&x)[N], Term term, int64_t) {
    double terms[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      terms[i] = term_of(term, static_cast<double>(x[i]));
    }
    return combine_all<Sum>(terms);
  }
  __device__ static double combine(double a, double b) { return a + b; }
  template <class C>
  __device__ static void finish(double state, const Reading& reading, C& y, C&) {
    y = static_cast<C>(reading.root ? std::sqrt(state) : state);
  }
};

// Count, mean and sum of squared deviations; aux is the mean. In double: a mean rounded to float
// would cost the deviations their digits, and their squares may leave the range of float.
struct Deviations {
  static constexpr bool kAux = true;
  static constexpr int kLevels = 1;
  template <class C>
  using State = Moments<double>;
  template <class C>
  using Aux = double;

  template <class C>
  __device__ static Moments<double> none() {
    return {0, 0, 0};
  }
  template <class T, class C, int N>
  __device__ static Moments<double> of(const C (&x)[N], Term, int64_t) {
    double values[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = static_cast<double>(x[i]);
    }
    const double mean = combine_all<Sum>(values) / N;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = (values[i] - mean) * (values[i] - mean);
    }
    return {N, mean, combine_all<Sum>(values)};
  }
  __device__ static Moments<double> combine(const Moments<double>& a, const Moments<double>& b) {
    return a.merge(b);
  }
  template <class C>
  __device__ static void finish(const Moments<double>& state, const Reading& reading, C& y,
                                double& aux) {
    const double variance = state.deviations / reading.divisor;
    y = static_cast<C>(reading.root ? std::sqrt(variance) : variance);
    aux = state.mean;
  }
};

struct LogSumExp {
  static constexpr bool kAux = false;
  static constexpr int kLevels = 1;
  template <class C>
  using State = MaxSum<C>;
  template <class C>
  using Aux = C;

  template <class C>
  __device__ static MaxSum<C> none() {
    return MaxSum<C>::none();
  }
  template <class T, class C, int N>
  __device__ static MaxSum<C> of(const C (&x)[N], Term, int64_t) {
    const C top = combine_all<Max>(x);
    // Minus infinity so far: exp(-inf - -inf) would be NaN.
    const C shift = top == -std::numeric_limits<C>::infinity() ? C(0) : top;
    C terms[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      terms[i] = exp_for<T>(x[i] - shift);
    }
    return {top, combine_all<Sum>(terms)};
  }
  template <class C>
  __device__ static MaxSum<C> combine(const MaxSum<C>& a, const MaxSum<C>& b) {
    const C top = Max::combine(a.max, b.max), low = Min::combine(a.max, b.max);
    const C share = low == top ? C(1) : std::exp(low - top);
    const bool first = a.max == top;
    return {top, (first ? a.sum : b.sum) + (first ? b.sum : a.sum) * share};
  }
  template <class C>
  __device__ static void finish(const MaxSum<C>& state, const Reading&, C& y, C&) {
    y = std::isinf(state.max) ? state.max : state.max + std::log(state.sum);
  }
};

// The largest term and how many are equal to it (aux), NaN to NaN.
struct Ties {
  static constexpr bool kAux = true;
  static constexpr int kLevels = 1;
  template <class C>
  struct State {
    C value, count;
  };
  template <class C>
  using Aux = C;

  template <class C>
  __device__ static State<C> none() {
    return {-std::numeric_limits<C>::infinity(), C(0)};
  }
  template <class T, class C, int N>
  __device__ static State<C> of(const C (&x)[N], Term term, int64_t) {
    C terms[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      terms[i] = term_of(term, x[i]);
    }
    State<C> state = {combine_all<Max>(terms), C(0)};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      // If a term is NaN, so is the value; NaN terms count as equal to it.
      state.count += (terms[i] == state.value) | (terms[i] != terms[i]) ? C(1) : C(0);
    }
    return state;
  }
  template <class S>
  __device__ static S combine(const S& a, const S& b) {
    const auto value = Max::combine(a.value, b.value);
    const auto count = [value](const S& s) {
      return (s.value == value) | (s.value != s.value) ? s.count : 0;
    };
    return {value, count(a) + count(b)};
  }
  template <class S, class C>
  __device__ static void finish(const S& state, const Reading& reading, C& y, C& aux) {
    y = reading.term == Term::negative ? -state.value : state.value;
    aux = state.count;
  }
};

// The product of the nonzero terms, and the number of zeros; aux is the derivative at a single
// zero.
struct Zeros {
  static constexpr bool kAux = true;
  static constexpr int kLevels = 1;
  template <class C>
  struct State {
    C product, zeros;
  };
  template <class C>
  using Aux = C;

  template <class C>
  __device__ static State<C> none() {
    return {C(1), C(0)};
  }
  template <class T, class C, int N>
  __device__ static State<C> of(const C (&x)[N], Term, int64_t) {
    C factors[N], zeros = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      factors[i] = x[i] == C(0) ? C(1) : x[i];
      zeros += x[i] == C(0) ? C(1) : C(0);
    }
    return {combine_all<Product>(factors), zeros};
  }
  template <class S>
  __device__ static S combine(const S& a, const S& b) {
    return {a.product * b.product, a.zeros + b.zeros};
  }
  template <class S, class C>
  __device__ static void finish(const S& state, const Reading&, C& y, C& aux) {
    y = state.zeros > C(0) ? state.product * C(0) : state.product;
    aux = state.zeros == C(1) ? state.product : C(0);
  }
};

// A term and its number, in 4-byte words without padding.
template <class C>
struct Candidate {
  C value;
  uint32_t low, high;
  __device__ int64_t index() const {
    return static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | low);
  }
  // NaN is above everything; of equal terms the first one.
  __device__ bool above(const Candidate& other) const {
    // No branches, because nvcc would spill a register for them.
    const bool nan = value != value, other_nan = other.value != other.value;
    const bool more = (value > other.value) | (nan & !other_nan);
    const bool equal = (value == other.value) | (nan & other_nan);
    return more | (equal & (index() < other.index()));
  }
};

// The first largest term; aux is its number.
struct First {
  static constexpr bool kAux = true;
  static constexpr int kLevels = 1;
  template <class C>
  using State = Candidate<C>;
  template <class C>
  using Aux = int64_t;

  template <class C>
  __device__ static Candidate<C> at(C value, int64_t index) {
    const auto bits = static_cast<uint64_t>(index);
    return {value, static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  }
  template <class C>
  __device__ static Candidate<C> none() {
    return at(Scalar<Max>::none<C>(), std::numeric_limits<int64_t>::max());
  }
  template <class T, class C, int N>
  __device__ static Candidate<C> of(const C (&x)[N], Term term, int64_t index) {
    C best = term_of(term, x[0]);
    int64_t first = index;
#pragma unroll
    for (int i = 1; i < N; ++i) {
      const C value = term_of(term, x[i]);
      if ((value > best) | ((value != value) & (best == best))) {
        best = value;
        first = index + i;
      }
    }
    return at(best, first);
  }
  template <class C>
  __device__ static Candidate<C> combine(const Candidate<C>& a, const Candidate<C>& b) {
    return b.above(a) ? b : a;
  }
  template <class C>
  __device__ static void finish(const Candidate<C>& state, const Reading& reading, C& y,
                                int64_t& aux) {
    y = term_of(reading.term, state.value);
    aux = state.index();
  }
};

}  // namespace binade::kernels::dev
