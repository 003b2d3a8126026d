// CUDA reductions whose state is more than one value: norms, variance, logsumexp, ties, products
// with zeros.
#include <binade/kernels/reduce/reduce_kernels.cuh>

namespace binade::kernels {
namespace {

template <class R>
void reduce_floating(const reduction::Reduction& a) {
  dispatch_floating("reduce", a.x.dtype, [&]<class T>(Type<T>) { reduction::reduce<R, T>(a); });
}

}  // namespace

void reduction::reduce_states(Reducer reducer, const Reduction& a) {
  switch (reducer) {
    case Reducer::power_sum: return reduce_floating<dev::PowerSum>(a);
    case Reducer::deviations: return reduce_floating<dev::Deviations>(a);
    case Reducer::log_sum_exp: return reduce_floating<dev::LogSumExp>(a);
    case Reducer::zeros: return reduce_floating<dev::Zeros>(a);
    default: reduce_floating<dev::Ties>(a);
  }
}

}  // namespace binade::kernels
