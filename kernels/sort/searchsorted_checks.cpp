#include <binade/kernels/sort/searchsorted.h>

namespace binade::kernels {

void check_arguments(const SearchSorted& a) {
  check(a.sequence.dim() == 2 && a.values.dim() == 2 && a.sequence.size(0) == a.values.size(0) &&
            a.sequence.dtype == a.values.dtype,
        "searchsorted: got a sequence ", a.sequence.dtype, " ", a.sequence.sizes, " and values ",
        a.values.dtype, " ", a.values.sizes, ", expected one dtype, [rows, n] and [rows, m]");
  check(a.y.dtype == DType::i64 && a.y.sizes == a.values.sizes, "searchsorted: got a result ",
        a.y.dtype, " ", a.y.sizes, ", expected i64 ", a.values.sizes);
  check(a.sequence.contiguous && a.values.contiguous && a.y.contiguous,
        "searchsorted: got a view with gaps, expected contiguous ones");
}

}  // namespace binade::kernels
