#include <binade/kernels/sort/cumextreme.h>
#include <binade/kernels/sort/line_checks_internal.h>

namespace binade::kernels {

void check_arguments(const CumulativeExtreme& a) {
  check_dim("cumextreme", a.x, a.dim);
  check_like("cumextreme", "values", a.values, a.x);
  check(a.indices.sizes == a.x.sizes && a.indices.dtype == DType::i64, "cumextreme: got indices ",
        a.indices.dtype, " ", a.indices.sizes, ", expected i64 ", a.x.sizes);
}

}  // namespace binade::kernels
