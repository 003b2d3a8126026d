// Checks of arguments that many ops share.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <cmath>
#include <initializer_list>

namespace binade {

inline void check_defined(const char* op, const Tensor& x) {
  check(x.defined(), op, ": got an undefined tensor, expected one with a value; assign it first");
}

inline void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  check(is_floating(x.dtype()), op, ": got dtype ", x.dtype(),
        ", expected a floating dtype; convert it with to()");
}

// Checks the operands of a contraction: two tensors of one floating dtype.
inline void check_floating(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a);
  check_defined(op, b);
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), op, ": got dtypes ", a.dtype(), " and ",
        b.dtype(), ", expected one floating dtype; convert one with to()");
}

// Checks that the defined tensors are on one device.
inline void check_one_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors) {
    if (t->defined()) {
      first = first ? first : t;
      check(t->device() == first->device(), op, ": got inputs on ", first->device(), " and ",
            t->device(), ", expected one device; move them with to()");
    }
  }
}

// Checks a number that an op combines with a tensor of this dtype: floating dtypes round it, other
// dtypes must represent it exactly.
inline void check_number(const char* op, double value, DType dtype) {
  const double limit = dtype == DType::i64   ? 0x1p63
                       : dtype == DType::i32 ? 0x1p31
                       : dtype == DType::u8  ? 256
                                             : 2;
  const bool is_signed = dtype == DType::i64 || dtype == DType::i32;
  check(is_floating(dtype) ||
            (value < limit && value >= (is_signed ? -limit : 0) && value == std::floor(value)),
        op, ": got the number ", value, " for a tensor of dtype ", dtype,
        ", expected one that the dtype holds; convert the tensor with to()");
}

// Checks a parameter or statistic of a norm of x; an undefined one passes.
inline void check_vector(const char* op, const char* what, const Tensor& t, const Tensor& x,
                         const Dims& sizes) {
  check_one_device(op, {&x, &t});
  check(!t.defined() || (t.sizes() == sizes && is_floating(t.dtype())), op, ": got ", what,
        " of shape ", t.defined() ? t.sizes() : Dims{}, " and dtype ",
        t.defined() ? t.dtype() : x.dtype(), ", expected ", sizes, " of a floating dtype");
}

inline void check_eps(const char* op, double eps) {
  check(eps >= 0, op, ": got eps ", eps, ", expected 0 or more");
}

// `dim` counted from 0, for a tensor of `rank` dimensions (a scalar counts as one dimension).
inline int wrap_dim(const char* op, int64_t dim, int rank) {
  const int64_t range = rank > 0 ? rank : 1;
  check(dim >= -range && dim < range, op, ": got dimension ", dim, ", expected ", -range, " to ",
        range - 1, " for a tensor of ", rank, " dimensions");
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

}  // namespace binade
