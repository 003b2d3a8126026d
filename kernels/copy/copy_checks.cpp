#include <binade/kernels/copy/copy.h>

namespace binade::kernels {

void check_arguments(const AddInto& a) {
  check(is_floating(a.y.dtype) && a.x.dtype == a.y.dtype, "add_into: got dtypes ", a.x.dtype,
        " and ", a.y.dtype, ", expected one floating dtype; convert with a copy");
  check(a.x.sizes == a.y.sizes, "add_into: got sizes ", a.x.sizes, " and ", a.y.sizes,
        ", expected equal sizes");
}

}  // namespace binade::kernels
