// CUDA binary operations and comparisons as maps (cuda/map.cuh): one kernel per operation and
// dtype, 16 bytes a thread. Broadcasts are strides of 0: along a whole row they stay on the vector
// path, so adding a bias costs what a plain addition costs.
#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/pointwise/binary_functors.h>
#include <binade/kernels/pointwise/pointwise_internal.h>
#include <binade/kernels/cuda/map.cuh>

#include <cstring>

namespace binade::kernels {
namespace {

// The type in which T is computed. For integers it is T itself.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;

template <class Functor, class T>
struct Forward {
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(Functor::forward(static_cast<Wide<T>>(a), static_cast<Wide<T>>(b)));
  }
};

template <class T>
void forward(Binary op, const StridedLoop& loop) {
  switch (op) {
#define BINADE_CASE(name, Functor, ...)                                        \
  case Binary::name:                                                           \
    if constexpr (is_floating(dtype_of<T>) || takes_integers(Binary::name)) {  \
      map<T, T, 2, dev::kVectorOf<T>>("binary_forward_" #name "_kernel", loop, \
                                      Forward<functor::Functor, T>{});         \
    }                                                                          \
    return;
    BINADE_BINARY_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
}

// For a comparison with a number, `b` is a second read of a, which comes from the cache.
template <Compare kOp, class T>
struct Comparison {
  Wide<T> number;
  bool is_number;
  __device__ uint8_t operator()(T a, T b) const {
    const auto x = static_cast<Wide<T>>(a), z = is_number ? number : static_cast<Wide<T>>(b);
    switch (kOp) {
#define BINADE_CASE(name, symbol) \
  case Compare::name: return x symbol z ? 1 : 0;
      BINADE_COMPARE_OPS(BINADE_CASE)
#undef BINADE_CASE
    }
    return 0;
  }
};

template <class T>
void compare(const CompareForward& a, const StridedLoop& loop) {
  const bool is_number = is_absent(a.b);
  const uint64_t bits = bits_of(a.a.dtype, a.number);
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  const auto number = static_cast<Wide<T>>(value);
  switch (a.op) {
#define BINADE_CASE(name, symbol)                                                  \
  case Compare::name:                                                              \
    return map<uint8_t, T, 2, dev::kVectorOf<T>>("compare_" #name "_kernel", loop, \
                                                 Comparison<Compare::name, T>{number, is_number});
    BINADE_COMPARE_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
}

}  // namespace

namespace cuda {

void binary_forward(const BinaryForward& a) {
  check_arguments(a);
  const StridedLoop loop("binary_forward", {&a.y, &a.a, &a.b});
  switch (a.y.dtype) {
    case DType::i64: return forward<int64_t>(a.op, loop);
    case DType::i32: return forward<int32_t>(a.op, loop);
    case DType::u8: return forward<uint8_t>(a.op, loop);
    default:
      dispatch_floating("binary_forward", a.y.dtype,
                        [&]<class T>(Type<T>) { forward<T>(a.op, loop); });
  }
}

void compare_forward(const CompareForward& a) {
  check_arguments(a);
  const StridedLoop loop("compare_forward", {&a.y, &a.a, is_absent(a.b) ? &a.a : &a.b});
  switch (a.a.dtype) {
    case DType::i64: return compare<int64_t>(a, loop);
    case DType::i32: return compare<int32_t>(a, loop);
    case DType::u8:
    case DType::boolean: return compare<uint8_t>(a, loop);
    default:
      dispatch_floating("compare_forward", a.a.dtype,
                        [&]<class T>(Type<T>) { compare<T>(a, loop); });
  }
}

}  // namespace cuda
}  // namespace binade::kernels
