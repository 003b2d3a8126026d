#include <binade/kernels/sort/sort.h>

namespace binade::kernels {
namespace {

struct Operands {
  const char* op;
  const View &x, &values, &indices;
  int dim;
};

void check_lines(const Operands& a) {
  check(a.dim >= 0 && a.dim < a.x.dim(), a.op, ": got dim ", a.dim, " of sizes ", a.x.sizes,
        ", expected 0 <= dim < rank");
  check(a.values.dtype == a.x.dtype && a.indices.dtype == DType::i64, a.op, ": got values ",
        a.values.dtype, " and indices ", a.indices.dtype, ", expected ", a.x.dtype, " and i64");
  check(a.values.sizes == a.indices.sizes && a.values.dim() == a.x.dim(), a.op, ": got values ",
        a.values.sizes, " and indices ", a.indices.sizes, " of x ", a.x.sizes);
  for (int d = 0; d < a.x.dim(); ++d) {
    const bool fits =
        d == a.dim ? a.values.size(d) <= a.x.size(d) : a.values.size(d) == a.x.size(d);
    check(fits, a.op, ": got a result of sizes ", a.values.sizes, " from x ", a.x.sizes, " along ",
          a.dim);
  }
  check(a.x.size(a.dim) < (int64_t(1) << 32) - 1, a.op, ": got ", a.x.size(a.dim),
        " elements along dim ", a.dim, ", expected fewer than 2^32 - 1");
}

}  // namespace

void check_arguments(const Sort& a) {
  check_lines({"sort", a.x, a.values, a.indices, a.dim});
  check(a.values.sizes == a.x.sizes, "sort: got a result of sizes ", a.values.sizes, ", expected ",
        a.x.sizes);
}

void check_arguments(const TopK& a) { check_lines({"topk", a.x, a.values, a.indices, a.dim}); }

}  // namespace binade::kernels
