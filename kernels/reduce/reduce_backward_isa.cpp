// dx = f(x, a, b) over tiles; see ReduceSlope.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/reduce/reduce_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C>
C sign_of(C x) {
  return static_cast<C>((x > 0) - (x < 0));
}

// y = a (x - b); y may be x. b is double: of a float b near x, x - b would keep the error of
// rounding b. With kRow there is one a and one b.
template <bool kRow, class C>
void deviation(C* y, const C* x, const C* a, const double* b, int64_t n) {
  const C row_a = a[0];
  const double row_b = b[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] =
        (kRow ? row_a : a[i]) * static_cast<C>(static_cast<double>(x[i]) - (kRow ? row_b : b[i]));
  }
}

// y = f(x, a, b); y may be x.
template <class C>
void slope(ReduceSlope op, C* y, const C* x, const C* a, const C* b, int64_t n) {
  switch (op) {
    case ReduceSlope::sign:
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = a[i] * sign_of(x[i]);
      }
      return;
    case ReduceSlope::equal:
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = (x[i] == b[i]) | ((x[i] != x[i]) & (b[i] != b[i])) ? a[i] : C(0);
      }
      return;
    case ReduceSlope::equal_or_nan:
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const C other = b[i] != b[i] ? b[i] : C(0);
        y[i] = x[i] == b[i] ? a[i] : other;
      }
      return;
    case ReduceSlope::direction:
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = b[i] != 0 ? a[i] * (x[i] / b[i]) : C(0);
      }
      return;
    case ReduceSlope::equal_abs:
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = (x[i] < 0 ? -x[i] : x[i]) == b[i] ? a[i] * sign_of(x[i]) : C(0);
      }
      return;
    case ReduceSlope::exponential:
      for_vectors<C>(n, [&](auto part, int64_t i, int64_t count) {
        const Vector<C> e = exp(load_some<part()>(x + i, count) - load_some<part()>(b + i, count));
        store_some<part()>(y + i, load_some<part()>(a + i, count) * e, count);
      });
      return;
    default:
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = x[i] != 0 ? a[i] / x[i] : b[i];
      }
  }
}

}  // namespace

void reduce_backward_tile(ReduceSlope op, DType dtype, const StridedTile& tile) {
  dispatch_floating("reduce backward", dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    C x_block[kBlockSize], a_block[kBlockSize], b_block[kBlockSize] = {}, y_block[kBlockSize];
    double wide_block[kBlockSize] = {};
    const bool row = op == ReduceSlope::deviation && tile.inner[2] == 0 && tile.inner[3] == 0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      std::byte* at[4];
      for (int k = 0; k < 4; ++k) {
        at[k] = tile.data[k] ? tile.data[k] + r * tile.outer[k] : nullptr;
      }
      for (int64_t i = 0; i < tile.n; i += kBlockSize) {
        const int64_t n = tile.n - i < kBlockSize ? tile.n - i : kBlockSize;
        const auto operand = [&](int k) { return at[k] + i * tile.inner[k]; };
        const C* x = load_block<T>(operand(1), tile.inner[1], n, x_block);
        C* y = result_block<T>(operand(0), tile.inner[0], y_block);
        if (row) {
          const auto* b = at[3] ? reinterpret_cast<const double*>(at[3]) : wide_block;
          deviation<true>(y, x, reinterpret_cast<const C*>(at[2]), b, n);
        } else if (op == ReduceSlope::deviation) {
          const C* a = load_block<C>(operand(2), tile.inner[2], n, a_block);
          const auto load_b = [&] {
            return load_block<double>(operand(3), tile.inner[3], n, wide_block);
          };
          deviation<false>(y, x, a, at[3] ? load_b() : wide_block, n);
        } else {
          const C* a = load_block<C>(operand(2), tile.inner[2], n, a_block);
          const C* b = at[3] ? load_block<C>(operand(3), tile.inner[3], n, b_block) : b_block;
          slope(op, y, x, a, b, n);
        }
        store_block<T>(y, operand(0), tile.inner[0], n);
      }
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
