#include <binade/kernels/reduce_checks.h>

namespace binade::kernels {

void check_arguments(const ReduceForward& a) {
  const DType dtype = a.x.dtype;
  check(dtype == a.y.dtype, "reduce ", to_string(a.op), ": got dtypes ", dtype, " and ", a.y.dtype,
        ", expected one dtype");
  check(
      is_floating(dtype) || ((dtype == DType::i64 || dtype == DType::i32) && a.op != Reduce::mean),
      "reduce ", to_string(a.op), ": got dtype ", dtype,
      ", expected a floating dtype, or i64 or i32 for sum, prod, max and min; convert with a copy");
  check(a.x.dim() == a.y.dim(), "reduce ", to_string(a.op), ": got sizes ", a.x.sizes,
        " and result ", a.y.sizes, ", expected equal ranks (reduced dimensions have size 1)");
  for (int d = 0; d < a.x.dim(); ++d) {
    check(a.y.size(d) == a.x.size(d) || a.y.size(d) == 1, "reduce ", to_string(a.op),
          ": got sizes ", a.x.sizes, " and result ", a.y.sizes, ", expected a result size of ",
          a.x.size(d), " or 1 in dimension ", d);
  }
  check(a.y.numel == 0 || a.x.numel > 0 || (a.op != Reduce::max && a.op != Reduce::min), "reduce ",
        to_string(a.op), ": got sizes ", a.x.sizes, ", expected at least one element to reduce");
}

void check_arguments(const ArgMax& a) {
  check(a.dim >= 0 && a.dim < a.x.dim(), "argmax: got dim ", a.dim, " of sizes ", a.x.sizes,
        ", expected 0 <= dim < rank");
  check(a.y.dtype == DType::i64, "argmax: got a result of dtype ", a.y.dtype, ", expected i64");
  Dims kept = a.x.sizes, dropped;
  kept[a.dim] = 1;
  for (int d = 0; d < a.x.dim(); ++d) {
    if (d != a.dim) {
      dropped.push_back(a.x.size(d));
    }
  }
  check(a.y.sizes == kept || a.y.sizes == dropped, "argmax: got a result of sizes ", a.y.sizes,
        ", expected ", kept, " or ", dropped);
  check(a.x.size(a.dim) > 0 || a.y.numel == 0, "argmax: got sizes ", a.x.sizes,
        ", expected at least one element along dim ", a.dim);
}

}  // namespace binade::kernels
