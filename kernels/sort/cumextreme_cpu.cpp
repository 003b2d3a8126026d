// CPU running maxima and minima: lines are split over threads, and a thread walks several lines at
// once.
#include <binade/kernels/sort/cumextreme.h>
#include <binade/kernels/sort/cumextreme_internal.h>
#include <binade/kernels/sort/lines_internal.h>

namespace binade::kernels::cpu {
namespace {

template <class T>
void walk(const CumulativeExtreme& a, int64_t begin, int count) {
  Line<T> x[kLines], values[kLines];
  Line<int64_t> indices[kLines];
  Ordered<T> so_far[kLines];
  int64_t at[kLines] = {};
  for (int l = 0; l < count; ++l) {
    x[l] = Line<T>(a.x, a.dim, begin + l);
    values[l] = Line<T>(a.values, a.dim, begin + l);
    indices[l] = Line<int64_t>(a.indices, a.dim, begin + l);
    so_far[l] = static_cast<Ordered<T>>(x[l][0]);
  }
  const int64_t n = a.x.size(a.dim);
  for (int64_t k = 0; k < n; ++k) {
    for (int l = 0; l < count; ++l) {
      const auto element = static_cast<Ordered<T>>(x[l][k]);
      if (is_extreme(element, so_far[l], a.smallest)) {
        so_far[l] = element;
        at[l] = k;
      }
      values[l][k] = static_cast<T>(so_far[l]);
      indices[l][k] = at[l];
    }
  }
}

}  // namespace

void cumextreme(const CumulativeExtreme& a) {
  check_arguments(a);
  if (a.values.numel == 0) {
    return;
  }
  dispatch("cumextreme", a.x.dtype, [&]<class T>(Type<T>) {
    for_lines(a.x, a.dim,
              [&] { return [&](int64_t line, int count) { walk<T>(a, line, count); }; });
  });
}

}  // namespace binade::kernels::cpu
