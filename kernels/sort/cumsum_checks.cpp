#include <binade/kernels/sort/cumsum_internal.h>

namespace binade::kernels {

void check_arguments(const CumulativeSum& a) {
  check(a.dim >= 0 && a.dim < a.x.dim(), "cumsum: got dim ", a.dim, " of sizes ", a.x.sizes,
        ", expected 0 <= dim < rank");
  check(is_floating(a.x.dtype) || a.x.dtype == DType::i64 || a.x.dtype == DType::i32,
        "cumsum: got dtype ", a.x.dtype, ", expected a floating dtype, i64 or i32");
  check(a.y.sizes == a.x.sizes && a.y.dtype == a.x.dtype, "cumsum: got a result ", a.y.dtype, " ",
        a.y.sizes, ", expected ", a.x.dtype, " ", a.x.sizes);
}

}  // namespace binade::kernels
