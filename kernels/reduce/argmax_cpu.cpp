// CPU argmax and argmin: one sequential scan per output.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/reduce/reduce_internal.h>

#include <algorithm>

namespace binade::kernels::cpu {
namespace {

template <class T>
auto comparable(T x) {
  if constexpr (is_half(dtype_of<T>)) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

template <class T>
bool is_nan(T value) {
  return value != value;  // NOLINT(misc-redundant-expression): also for integers
}

// For adjacent elements: finds the extreme value in lanes, without branches, then its first
// position.
template <class T>
int64_t scan_adjacent(const T* x, int64_t n, bool smallest) {
  using C = decltype(comparable(x[0]));
  constexpr int64_t kLanes = 16;
  C most[kLanes];
  bool nan = false;
  std::fill_n(most, kLanes, comparable(x[0]));
  const auto pass = [&](auto before) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const C value = comparable(x[i + lane]);
        most[lane] = before(value, most[lane]) ? value : most[lane];
        nan |= is_nan(value);
      }
    }
    for (; i < n; ++i) {
      const C value = comparable(x[i]);
      most[0] = before(value, most[0]) ? value : most[0];
      nan |= is_nan(value);
    }
    for (int64_t lane = 1; lane < kLanes; ++lane) {
      most[0] = before(most[lane], most[0]) ? most[lane] : most[0];
    }
  };
  smallest ? pass([](C a, C b) { return a < b; }) : pass([](C a, C b) { return a > b; });
  int64_t i = 0;
  while (nan ? !is_nan(comparable(x[i])) : comparable(x[i]) != most[0]) {
    ++i;
  }
  return i;
}

template <class T>
int64_t scan(const T* x, int64_t stride, int64_t n, bool smallest) {
  if (stride == 1) {
    return scan_adjacent(x, n, smallest);
  }
  int64_t best = 0;
  auto most = comparable(x[0]);
  for (int64_t i = 1; i < n && !is_nan(most); ++i) {  // the first NaN wins
    const auto value = comparable(x[i * stride]);
    if ((smallest ? value < most : value > most) || is_nan(value)) {
      most = value;
      best = i;
    }
  }
  return best;
}

// y, values and x with size 1 at `dim`.
struct Outputs {
  View y, values, x;
};

template <class T>
void argmax_of(const ArgMax& a, const Outputs& at) {
  const int64_t n = a.x.size(a.dim), stride = a.x.strides[a.dim];
  const int rank = a.x.dim();
  parallel_for(a.y.numel, 32768 / n + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, x = 0, y = 0, value = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const int64_t index = rest % at.x.size(d);
        rest /= at.x.size(d);
        x += index * at.x.strides[d];
        y += index * at.y.strides[d];
        value += at.values ? index * at.values.strides[d] : 0;
      }
      const T* from = a.x.as<const T>() + x;
      const int64_t best = scan(from, stride, n, a.smallest);
      at.y.as<int64_t>()[y] = best;
      if (at.values) {
        at.values.as<T>()[value] = from[best * stride];
      }
    }
  });
}

}  // namespace

void argmax(const ArgMax& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  Outputs at = {with_reduced_dim(a, a.y), with_reduced_dim(a, a.values), a.x};
  at.x.sizes[a.dim] = 1;
  switch (a.x.dtype) {
    case DType::i64: return argmax_of<int64_t>(a, at);
    case DType::i32: return argmax_of<int32_t>(a, at);
    default:
      dispatch_floating("argmax", a.x.dtype,
                        [&](auto type) { argmax_of<typename decltype(type)::type>(a, at); });
  }
}

}  // namespace binade::kernels::cpu
