#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/reduce/cosine_similarity_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T, class C = Compute<T>>
struct Row {
  const T* x[2];
  C* y;
  C* inverse[2];

  Row(const CosineRows& a, int64_t row) : y(static_cast<C*>(a.y) + row) {
    for (int k = 0; k < 2; ++k) {
      x[k] = static_cast<const T*>(a.x[k]) + row * a.stride[k];
      inverse[k] = static_cast<C*>(a.inverse[k]) + row;
    }
  }
};

struct CosineSums {
  double product, square1, square2;

  // True if no square left the range of float; then no product has.
  bool in_range() const {
    return square1 < 1e38 && square2 < 1e38 && square1 > 1e-30 && square2 > 1e-30;
  }
};

// The sums of a row whose squares leave the range of float.
template <class T>
[[gnu::noinline]] CosineSums wide_sums(const Row<T>& row, int64_t cols) {
  CosineSums sums{};
  for (int64_t i = 0; i < cols; ++i) {
    const auto u = static_cast<double>(load_some<true>(row.x[0] + i, 1)[0]);
    const auto v = static_cast<double>(load_some<true>(row.x[1] + i, 1)[0]);
    sums.product += u * v;
    sums.square1 += u * u;
    sums.square2 += v * v;
  }
  return sums;
}

template <class T>
void forward_row(const CosineRows& a, int64_t index) {
  using C = Compute<T>;
  const Row<T> row(a, index);
  CosineSums sums{};
  for_blocks(a.cols, [&](int64_t begin, int64_t size) {
    Vector<C> product{}, square1{}, square2{};
    for_vectors<C>(size, [&](auto part, int64_t at, int64_t n) {
      const int64_t i = begin + at;
      const Vector<C> u = load_some<part()>(row.x[0] + i, n);
      const Vector<C> v = load_some<part()>(row.x[1] + i, n);
      product += u * v;
      square1 += u * u;
      square2 += v * v;
    });
    sums.product += static_cast<double>(reduce_add<C>(product));
    sums.square1 += static_cast<double>(reduce_add<C>(square1));
    sums.square2 += static_cast<double>(reduce_add<C>(square2));
  });
  if (sizeof(C) == 4 && !sums.in_range()) {
    sums = wide_sums(row, a.cols);
  }
  const auto inverse = [eps = a.eps](double square) {
    const double norm = __builtin_sqrt(square);
    return norm < eps ? -1 / eps : 1 / norm;
  };
  const double first = inverse(sums.square1), second = inverse(sums.square2);
  *row.inverse[0] = static_cast<C>(first);
  *row.inverse[1] = static_cast<C>(second);
  *row.y = static_cast<C>(sums.product * __builtin_fabs(first) * __builtin_fabs(second));
}

template <class T>
void backward_row(const CosineRows& a, int64_t index) {
  using C = Compute<T>;
  const Row<T> row(a, index);
  const C dy = static_cast<const C*>(a.dy)[index], y = *row.y;
  for (int k = 0; k < 2; ++k) {
    if (!a.dx[k]) {
      continue;
    }
    const T *mine = row.x[k], *other = row.x[1 - k];
    T* dx = static_cast<T*>(a.dx[k]) + index * a.dx_stride[k];
    const C signed_inverse = *row.inverse[k], signed_other = *row.inverse[1 - k];
    const C inverse = signed_inverse < 0 ? -signed_inverse : signed_inverse;
    const C other_inverse = signed_other < 0 ? -signed_other : signed_other;
    const C across = dy * inverse, along = signed_inverse < 0 ? 0 : across * y;
    // Divides by the norms first, since the square of an inverse may leave the range.
    for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
      const Vector<C> d = load_some<part()>(other + i, n) * other_inverse * across -
                          load_some<part()>(mine + i, n) * inverse * along;
      store_some<part()>(dx + i, d, n);
    });
  }
}

}  // namespace

void cosine_rows_forward(const CosineRows& a) {
  dispatch_floating("cosine_similarity", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t row = 0; row < a.rows; ++row) {
      forward_row<T>(a, row);
    }
  });
}

void cosine_rows_backward(const CosineRows& a) {
  dispatch_floating("cosine_similarity", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t row = 0; row < a.rows; ++row) {
      backward_row<T>(a, row);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
