#include <binade/kernels/sort/cumextreme.h>

namespace binade::kernels {

void check_arguments(const CumulativeExtreme& a) {
  check(a.dim >= 0 && a.dim < a.x.dim(), "cumextreme: got dim ", a.dim, " of sizes ", a.x.sizes,
        ", expected 0 <= dim < rank");
  check(a.values.sizes == a.x.sizes && a.values.dtype == a.x.dtype, "cumextreme: got values ",
        a.values.dtype, " ", a.values.sizes, ", expected ", a.x.dtype, " ", a.x.sizes);
  check(a.indices.sizes == a.x.sizes && a.indices.dtype == DType::i64, "cumextreme: got indices ",
        a.indices.dtype, " ", a.indices.sizes, ", expected i64 ", a.x.sizes);
}

}  // namespace binade::kernels
