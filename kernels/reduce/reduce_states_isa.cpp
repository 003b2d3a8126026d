// Reductions whose state is more than one value. The sequence of an output is loaded into blocks of
// contiguous values in the compute type. A few vectorised passes over a block in cache give its
// state, and states are combined pairwise. If the outputs are the inner dimension, a tile of them
// is transposed into such blocks.
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/reduce/reduce_sequence_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C>
C sum_of(const C* x, int64_t n) {
  return reduce_block<C, Sum>(x, n);
}

template <class C>
void read_terms(Term term, const C* x, C* t, int64_t n) {
  switch (term) {
    case Term::plain:
      for (int64_t i = 0; i < n; ++i) {
        t[i] = x[i];
      }
      return;
    case Term::negative:
      for (int64_t i = 0; i < n; ++i) {
        t[i] = -x[i];
      }
      return;
    default:
      for (int64_t i = 0; i < n; ++i) {
        t[i] = x[i] < 0 ? -x[i] : x[i];
      }
  }
}

// Elements as doubles; with kPart the first n, and `fill` in the place of the others.
template <bool kPart>
BINADE_INLINE Vector<double> load_wide(const double* x, int64_t n, double fill) {
  return load_some<kPart>(x, n, fill);
}
typedef float WideFloats __attribute__((vector_size(4 * kLanes<double>)));
template <bool kPart>
BINADE_INLINE Vector<double> load_wide(const float* x, int64_t n, double fill) {
  WideFloats floats = WideFloats{} + static_cast<float>(fill);
  __builtin_memcpy(&floats, x, kPart ? static_cast<size_t>(n) * sizeof(float) : sizeof floats);
  return __builtin_convertvector(floats, Vector<double>);
}

template <class C>
double sum_of_squares(const C* x, int64_t n) {
  Vector<double> sums[kWays] = {};
  for_vectors_in_ways<double>(n, [&](auto part, auto way, int64_t i, int64_t count) {
    const Vector<double> v = load_wide<part()>(x + i, count, 0);
    sums[way()] += v * v;
  });
  return reduce_add<double>(sums);
}

// The sums of d = x - shift and of d^2.
struct DeviationSums {
  double plain, squares;
};
template <class C>
DeviationSums sums_about(double shift, const C* x, int64_t n) {
  Vector<double> plain[kWays] = {}, squares[kWays] = {};
  for_vectors_in_ways<double>(n, [&](auto part, auto way, int64_t i, int64_t count) {
    const Vector<double> d = load_wide<part()>(x + i, count, shift) - shift;
    plain[way()] += d;
    squares[way()] += d * d;
  });
  return {reduce_add<double>(plain), reduce_add<double>(squares)};
}

// Each reducer defines: the type of the numbers in its state; of(), the state of n <= kBlockSize
// contiguous values, with scratch memory `t`; and combine(), the state of two sets of terms.
struct PowerSum {
  template <class C>
  using Number = double;

  template <class C>
  static ReduceState<double> of(Term term, const C* x, int64_t n, C* t) {
    if (term == Term::square) {
      return {sum_of_squares(x, n), 0, 0};
    }
    read_terms(term, x, t, n);
    return {static_cast<double>(sum_of(t, n)), 0, 0};
  }
  template <class S>
  static S combine(const S& a, const S& b) {
    return {a.first + b.first, 0, 0};
  }
};

struct Deviations {
  template <class C>
  using Number = double;

  template <class C>
  static ReduceState<double> of(Term, const C* x, int64_t n, C*) {
    // For floats any element of the block serves as the shift: double loses at most n of its units,
    // less than float's rounding. For doubles the shift must be the mean up to rounding.
    const auto count = static_cast<double>(n);
    const double shift =
        kSame<C, double> ? static_cast<double>(sum_of(x, n)) / count : static_cast<double>(x[0]);
    const DeviationSums sums = sums_about(shift, x, n);
    const double delta = sums.plain / count, squares = sums.squares - delta * sums.plain;
    return {shift + delta, squares < 0 ? 0 : squares, count};
  }
  template <class S>
  static S combine(const S& a, const S& b) {
    const auto total = a.third + b.third, delta = b.first - a.first, share = b.third / total;
    return {a.first + delta * share, a.second + b.second + delta * delta * a.third * share, total};
  }
};

struct LogSumExp {
  template <class C>
  using Number = C;

  template <class C>
  static ReduceState<C> of(Term, const C* x, int64_t n, C* t) {
    const C largest = reduce_block<C, Max>(x, n);
    if (largest == lowest<C>()) {
      return {largest, 0, 0};
    }
    for_vectors<C>(n, [&](auto part, int64_t i, int64_t count) {
      store_some<part()>(t + i, exp(load_some<part()>(x + i, count) - largest), count);
    });
    return {largest, sum_of(t, n), 0};
  }
  template <class S>
  static S combine(const S& a, const S& b) {
    const auto top = Max::combine(a.first, b.first);
    // Both -inf: exp(-inf - -inf) would be NaN.
    const auto part = [&](const S& s) {
      return s.first == top || s.second == 0 ? s.second : s.second * power(s.first - top);
    };
    return {top, part(a) + part(b), 0};
  }

 private:
  static float power(float x) { return __builtin_expf(x); }
  static double power(double x) { return __builtin_exp(x); }
};

struct Ties {
  template <class C>
  using Number = C;

  template <class C>
  static ReduceState<C> of(Term term, const C* x, int64_t n, C* t) {
    read_terms(term, x, t, n);
    const C largest = reduce_block<C, Max>(t, n);
    for (int64_t i = 0; i < n; ++i) {
      t[i] = (t[i] == largest) | (t[i] != t[i]) ? C(1) : C(0);  // of a NaN all are the largest
    }
    return {largest, sum_of(t, n), 0};
  }
  template <class S>
  static S combine(const S& a, const S& b) {
    const auto top = Max::combine(a.first, b.first);
    const auto count = [top](const S& s) {
      return (s.first == top) | (s.first != s.first) ? s.second : 0;
    };
    return {top, count(a) + count(b), 0};
  }
};

struct Zeros {
  template <class C>
  using Number = C;

  template <class C>
  static ReduceState<C> of(Term, const C* x, int64_t n, C* t) {
    for (int64_t i = 0; i < n; ++i) {
      t[i] = x[i] == 0 ? C(1) : x[i];
    }
    const C product = reduce_block<C, Product>(t, n);
    for (int64_t i = 0; i < n; ++i) {
      t[i] = x[i] == 0 ? C(1) : C(0);
    }
    return {product, sum_of(t, n), 0};
  }
  template <class S>
  static S combine(const S& a, const S& b) {
    return {a.first * b.first, a.second + b.second, 0};
  }
};

template <class C, class R>
using StateOf = ReduceState<typename R::template Number<C>>;
template <class C, class R>
using States = ScalarCascade<StateOf<C, R>, R>;

// A tile of outputs: n rows of up to kTile columns, each column a block in the compute type.
constexpr int64_t kTile = 16, kRows = 256;
template <class C>
using ReadTile = void (*)(const std::byte* x, int64_t column_stride, int64_t columns, Rows& rows,
                          int64_t n, C (*block)[kRows]);
template <class T, class C>
void read_tile(const std::byte* x, int64_t column_stride, int64_t columns, Rows& rows, int64_t n,
               C (*block)[kRows]) {
  T tile[kTile][kRows];
  for (int64_t r = 0; r < n; ++r, rows.next()) {
    const std::byte* from = x + rows.offset();
    for (int64_t c = 0; c < columns; ++c) {
      tile[c][r] = *reinterpret_cast<const T*>(from + c * column_stride);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    to_compute(tile[c], block[c], n);
  }
}

// Code that depends on the dtype is called through pointers, so that dtypes share the loops.
template <class C, class R>
void along(const ReduceTask& task, StateOf<C, R>* y, LoadBlock<C> load) {
  C block[kBlockSize], scratch[kBlockSize];
  const int64_t blocks = (task.size[0] + kBlockSize - 1) / kBlockSize;
  for (int64_t column = 0; column < task.columns; ++column) {
    const std::byte* x = task.x + column * task.column_stride;
    States<C, R> states;
    Rows rows(task, 1, task.begin / blocks);
    int64_t b = task.begin % blocks;
    for (int64_t unit = task.begin; unit < task.end; ++unit) {
      const int64_t i = b * kBlockSize;
      const int64_t n = task.size[0] - i < kBlockSize ? task.size[0] - i : kBlockSize;
      const std::byte* from = x + rows.offset() + i * task.stride[0];
      states.push(R::of(task.term, load(from, task.stride[0], n, block), n, scratch));
      if (++b == blocks) {
        b = 0;
        rows.next();
      }
    }
    y[column] = states.finish();
  }
}

template <class C, class R>
void across(const ReduceTask& task, StateOf<C, R>* y, ReadTile<C> read) {
  C block[kTile][kRows], scratch[kRows];
  for (int64_t first = 0; first < task.columns; first += kTile) {
    const int64_t columns = task.columns - first < kTile ? task.columns - first : kTile;
    States<C, R> states[kTile];
    Rows rows(task, 0, task.begin);
    for (int64_t begin = task.begin; begin < task.end; begin += kRows) {
      const int64_t n = task.end - begin < kRows ? task.end - begin : kRows;
      read(task.x + first * task.column_stride, task.column_stride, columns, rows, n, block);
      for (int64_t c = 0; c < columns; ++c) {
        states[c].push(R::of(task.term, block[c], n, scratch));
      }
    }
    for (int64_t c = 0; c < columns; ++c) {
      y[first + c] = states[c].finish();
    }
  }
}

template <class R>
void reduce(DType dtype, const ReduceTask& task) {
  dispatch_floating("reduce", dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    auto* y = static_cast<StateOf<C, R>*>(task.partial);
    task.across ? across<C, R>(task, y, read_tile<T, C>) : along<C, R>(task, y, load_block<T, C>);
  });
}

template <class C, class R>
void combine_chunks(StateOf<C, R>* partial, int64_t chunks, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i) {
    States<C, R> states;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      states.push(partial[chunk * columns + i]);
    }
    partial[i] = states.finish();
  }
}

// Calls f with the reducer's type.
template <class F>
void with_reducer(Reducer reducer, F&& f) {
  switch (reducer) {
    case Reducer::power_sum: return f(PowerSum{});
    case Reducer::deviations: return f(Deviations{});
    case Reducer::log_sum_exp: return f(LogSumExp{});
    case Reducer::zeros: return f(Zeros{});
    default: return f(Ties{});
  }
}

}  // namespace

void reduce_states(Reducer reducer, DType dtype, const ReduceTask& task) {
  with_reducer(reducer, [&]<class R>(R) { reduce<R>(dtype, task); });
}

void reduce_state_partials(Reducer reducer, DType dtype, void* partial, int64_t chunks,
                           int64_t columns) {
  with_reducer(reducer, [&]<class R>(R) {
    if (dtype == DType::f64) {
      combine_chunks<double, R>(static_cast<StateOf<double, R>*>(partial), chunks, columns);
    } else {
      combine_chunks<float, R>(static_cast<StateOf<float, R>*>(partial), chunks, columns);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
