// CUDA argmax and argmin, with or without the elements themselves: the reductions of
// reduce/reduce_kernels.cuh with numbered terms. Of equal elements the one with the lowest index
// wins, so the result does not depend on how the work is split.
#include <binade/kernels/reduce/reduce_kernels.cuh>

namespace binade::kernels {

void cuda::argmax(const ArgMax& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const View index = with_reduced_dim(a, a.y), values = with_reduced_dim(a, a.values);
  const reduction::Reduction r = {.x = a.x,
                                  .y = values,
                                  .aux = index,
                                  .reading = {.term = a.smallest ? Term::negative : Term::plain}};
  const auto start = [&]<class T>(Type<T>) { reduction::reduce<dev::First, T>(r); };
  switch (a.x.dtype) {
    case DType::i64: return start(Type<int64_t>{});
    case DType::i32: return start(Type<int32_t>{});
    default: dispatch_floating("argmax", a.x.dtype, start);
  }
}

}  // namespace binade::kernels
