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

template <class C>
BINADE_INLINE C root(C x) {
  if constexpr (sizeof(C) == 8) {
    return __builtin_sqrt(x);
  } else {
    return __builtin_sqrtf(x);
  }
}

template <class T>
void forward_row(const CosineRows& a, int64_t index) {
  using C = Compute<T>;
  const Row<T> row(a, index);
  Vector<C> product{}, square1{}, square2{};
  for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> u = load_some<part()>(row.x[0] + i, n), v = load_some<part()>(row.x[1] + i, n);
    product += u * v;
    square1 += u * u;
    square2 += v * v;
  });
  const C eps = static_cast<C>(a.eps);
  const auto inverse = [eps](C square) {
    const C norm = root(square);
    return norm < eps ? -1 / eps : 1 / norm;
  };
  const C first = inverse(reduce_add<C>(square1)), second = inverse(reduce_add<C>(square2));
  *row.inverse[0] = first;
  *row.inverse[1] = second;
  *row.y = reduce_add<C>(product) * (first < 0 ? -first : first) * (second < 0 ? -second : second);
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
    const C across = dy * inverse * (signed_other < 0 ? -signed_other : signed_other);
    const C along = signed_inverse < 0 ? 0 : dy * y * inverse * inverse;
    for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
      const Vector<C> d =
          load_some<part()>(other + i, n) * across - load_some<part()>(mine + i, n) * along;
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
