// CUDA sums, products and extremes, and the choice of a reducer. The kernels are those of
// reduce/reduce_kernels.cuh.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/reduce/reduce_kernels.cuh>

namespace binade::kernels {
namespace {

using reduction::Reduction;

template <class Op>
void reduce_dtype(const Reduction& a) {
  constexpr bool kSums = std::is_same_v<Op, dev::Sum>;
  constexpr bool kWraps = kSums || std::is_same_v<Op, dev::Product>;
  using R = dev::Scalar<Op>;
  switch (a.x.dtype) {
    case DType::i64: return reduction::reduce<R, std::conditional_t<kWraps, uint64_t, int64_t>>(a);
    case DType::i32:
      if constexpr (kSums) {
        return reduction::reduce<R, int32_t, uint64_t>(a);
      } else {
        return reduction::reduce<R, std::conditional_t<kWraps, uint32_t, int32_t>>(a);
      }
    case DType::u8:
    case DType::boolean:
      if constexpr (kSums) {
        return reduction::reduce<R, uint8_t, uint64_t>(a);
      } else if constexpr (!kWraps) {
        return reduction::reduce<R, uint8_t>(a);
      }
      [[fallthrough]];
    default:
      dispatch_floating("reduce", a.x.dtype, [&]<class T>(Type<T>) { reduction::reduce<R, T>(a); });
  }
}

}  // namespace

void cuda::reduce_forward(const ReduceForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  if (a.x.numel == 0) {
    const double nothing = reduction_of_nothing(a.op);
    kernels::fill({.y = a.y, .value = nothing});
    if (a.aux) {
      kernels::fill({.y = a.aux, .value = a.op == Reduce::prod ? 0 : nothing});
    }
    return;
  }
  const ReduceRule rule = reduce_rule(a, a.x.numel / a.y.numel);
  const Reduction r = {.x = a.x, .y = a.y, .aux = a.aux, .reading = rule.reading};
  switch (rule.reducer) {
    case Reducer::max: return reduce_dtype<dev::Max>(r);
    case Reducer::min: return reduce_dtype<dev::Min>(r);
    case Reducer::product: return reduce_dtype<dev::Product>(r);
    case Reducer::sum: return reduce_dtype<dev::Sum>(r);
    default: reduction::reduce_states(rule.reducer, r);
  }
}

}  // namespace binade::kernels
