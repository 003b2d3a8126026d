// CUDA: one hop of a reduction as a map (cuda/map.cuh), one vector of x and as many received
// elements per thread and turn. Reads 2, writes 1 element: bandwidth bound. The operations and
// their order are those of the CPU, so the results have the same bits.
#include <binade/kernels/copy/combine.h>
#include <binade/kernels/pointwise/binary_functors.h>
#include <binade/kernels/cuda/map.cuh>

namespace binade::kernels {
namespace {

// The type in which T is combined; integers stay as they are.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;

// The view as one dimension: the operands have equal numbers of elements, but may differ in sizes.
View flat(View v) {
  v.sizes = {v.numel};
  v.strides = {1};
  return v;
}

template <class C>
struct Divisors {
  C before, after;
  bool any;  // false: both are 1
};

template <class Functor, class Out, class In, class T>
struct Combined {
  Divisors<Wide<T>> divide;
  __device__ Out operator()(In received, T x) const {
    const auto other = static_cast<Wide<T>>(received), own = static_cast<Wide<T>>(x);
    return static_cast<Out>(divide.any ? Functor::forward(other, own / divide.before) / divide.after
                                       : Functor::forward(other, own));
  }
};

template <class Out, class T>
struct Scaled {
  Divisors<Wide<T>> divide;
  __device__ Out operator()(T x) const {
    return static_cast<Out>(static_cast<Wide<T>>(x) / divide.before / divide.after);
  }
};

template <class Out, class In, class T>
void combine_as(const Combine& a) {
  using C = Wide<T>;
  const Divisors<C> divide{static_cast<C>(a.before), static_cast<C>(a.after),
                           a.before != 1 || a.after != 1};
  constexpr int kVector = dev::kVectorOf<T>;
  const View y = flat(a.y), received = flat(a.received), x = flat(a.x);
  const StridedLoop loop("combine", {&y, &received, &x});
  switch (a.op) {
    case CombineOp::sum:
      return map<Out, T, 2, kVector, 4, In>("combine_sum_kernel", loop,
                                            Combined<functor::Add, Out, In, T>{divide});
    case CombineOp::max:
      return map<Out, T, 2, kVector, 4, In>("combine_max_kernel", loop,
                                            Combined<functor::Maximum, Out, In, T>{divide});
    case CombineOp::min:
      return map<Out, T, 2, kVector, 4, In>("combine_min_kernel", loop,
                                            Combined<functor::Minimum, Out, In, T>{divide});
  }
}

template <class Out, class T>
void combine_into(const Combine& a) {
  using C = Wide<T>;
  if (!a.received) {
    const Divisors<C> divide{static_cast<C>(a.before), static_cast<C>(a.after), true};
    const View y = flat(a.y), x = flat(a.x);
    map<Out, T, 1, dev::kVectorOf<T>>("combine_first_kernel", StridedLoop("combine", {&y, &x}),
                                      Scaled<Out, T>{divide});
  } else if (a.received.dtype == a.x.dtype) {
    combine_as<Out, T, T>(a);
  } else {
    combine_as<Out, C, T>(a);
  }
}

template <class T>
void combine_values(const Combine& a) {
  if (a.y.dtype == a.x.dtype) {
    combine_into<T, T>(a);
  } else {
    combine_into<Wide<T>, T>(a);
  }
}

}  // namespace

void cuda::combine(const Combine& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  switch (a.x.dtype) {
    case DType::i64: return combine_values<int64_t>(a);
    case DType::i32: return combine_values<int32_t>(a);
    default:
      dispatch_floating("combine", a.x.dtype, [&]<class T>(Type<T>) { combine_values<T>(a); });
  }
}

}  // namespace binade::kernels
