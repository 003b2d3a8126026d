#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/sort/searchsorted.h>
#include <binade/kernels/sort/searchsorted_internal.h>

#include <bit>

namespace binade::kernels::cpu {

void searchsorted(const SearchSorted& a) {
  check_arguments(a);
  const int64_t n = a.sequence.size(1), m = a.values.size(1);
  const auto steps = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n)));
  dispatch("searchsorted", a.values.dtype, [&]<class T>(Type<T>) {
    const T* sequence = a.sequence.as<T>();
    const T* values = a.values.as<T>();
    int64_t* y = a.y.as<int64_t>();
    parallel_for(a.y.numel, kSerialElements / (steps + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = place_of<T>(sequence + i / m * n, n, values[i], a.right);
      }
    });
  });
}

}  // namespace binade::kernels::cpu
