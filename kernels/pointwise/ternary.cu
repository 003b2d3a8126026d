// CUDA kernels of three operands as maps (cuda/map.cuh). A selection moves bits: one kernel per
// width. A number is an argument of the kernel. The kernel then reads another operand in the place
// of the missing one, so that one kernel serves both cases; the second read comes from the cache.
#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/base/pointwise_math.h>
#include <binade/kernels/pointwise/ternary.h>
#include <binade/kernels/cuda/map.cuh>

namespace binade::kernels {
namespace {

enum class Number : int32_t { none, a, b };  // which operand is the number

template <class W>
struct Where {
  W value;
  Number number;
  __device__ W operator()(uint8_t condition, W a, W b) const {
    const W if_true = number == Number::a ? value : a, if_false = number == Number::b ? value : b;
    return condition != 0 ? if_true : if_false;
  }
};

template <class T>
struct Lerp {
  Compute<T> number;
  bool is_number;
  __device__ T operator()(T a, T b, T weight) const {
    const Compute<T> w = is_number ? number : static_cast<Compute<T>>(weight);
    return static_cast<T>(math_lerp(static_cast<Compute<T>>(a), static_cast<Compute<T>>(b), w));
  }
};

}  // namespace

void cuda::where_forward(const WhereForward& a) {
  check_arguments(a);
  const Number number = is_absent(a.a) ? Number::a : is_absent(a.b) ? Number::b : Number::none;
  const View &if_true = number == Number::a ? a.b : a.a,
             &if_false = number == Number::b ? a.a : a.b;
  const StridedLoop loop("where", {&a.y, &a.condition, &if_true, &if_false});
  const uint64_t bits = bits_of(a.y.dtype, a.value);
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) {
    constexpr int kVector = dev::kVectorOf<W> < 8 ? dev::kVectorOf<W> : 8;
    map<W, W, 3, kVector, 4, uint8_t>("where_forward_kernel", loop,
                                      Where<W>{static_cast<W>(bits), number});
  });
}

void cuda::lerp_forward(const LerpForward& a) {
  check_arguments(a);
  const bool is_number = is_absent(a.weight);
  const StridedLoop loop("lerp", {&a.y, &a.a, &a.b, is_number ? &a.a : &a.weight});
  dispatch_floating("lerp", a.y.dtype, [&]<class T>(Type<T>) {
    map<T, T, 3, dev::kVectorOf<T>>("lerp_forward_kernel", loop,
                                    Lerp<T>{static_cast<Compute<T>>(a.number), is_number});
  });
}

}  // namespace binade::kernels
