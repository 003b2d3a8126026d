// Helpers of cumulative sums that every backend uses.
#pragma once
#include <binade/kernels/sort/cumsum.h>

namespace binade::kernels {

// Calls f(Type<T>{}) for the dtypes of cumulative sums; integers as unsigned, so that sums may
// wrap.
template <class F>
decltype(auto) dispatch_sums(DType dtype, F&& f) {
  switch (dtype) {
    case DType::i64: return f(Type<uint64_t>{});
    case DType::i32: return f(Type<uint32_t>{});
    default: return dispatch_floating("cumsum", dtype, static_cast<F&&>(f));
  }
}

}  // namespace binade::kernels
