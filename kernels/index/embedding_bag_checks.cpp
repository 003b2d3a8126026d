#include <binade/kernels/index/embedding_bag.h>

namespace binade::kernels {

void check_arguments(const EmbeddingBag& a) {
  check(is_floating(a.weight.dtype) && a.weight.dim() == 2 && a.y.dtype == a.weight.dtype &&
            a.y.dim() == 2 && a.y.contiguous && a.y.size(1) == a.weight.size(1),
        a.op, ": got a weight ", a.weight.dtype, " ", a.weight.sizes, " and a result ", a.y.dtype,
        " ", a.y.sizes, ", expected a floating [rows, columns] and a contiguous [bags, columns]");
  check(a.index.dtype == DType::i64 && a.index.dim() == 1 && a.index.contiguous &&
            a.offsets.dtype == DType::i64 && a.offsets.contiguous &&
            a.offsets.sizes == Dims{a.y.size(0) + 1},
        a.op, ": got an index ", a.index.dtype, " ", a.index.sizes, " and offsets ",
        a.offsets.dtype, " ", a.offsets.sizes, ", expected contiguous i64 [n] and i64 [",
        a.y.size(0) + 1, "]");
  check(!a.factors || (a.mode == BagMode::sum && a.factors.dtype == a.weight.dtype &&
                       a.factors.contiguous && a.factors.sizes == a.index.sizes),
        a.op, ": got factors ", a.factors.dtype, " ", a.factors.sizes, ", expected contiguous ",
        a.weight.dtype, " ", a.index.sizes, " of a sum");
  check(!a.chosen || (a.mode == BagMode::max && a.chosen.dtype == DType::i64 &&
                      a.chosen.contiguous && a.chosen.sizes == a.y.sizes),
        a.op, ": got chosen rows ", a.chosen.dtype, " ", a.chosen.sizes,
        ", expected contiguous i64 ", a.y.sizes, " of a maximum");
}

}  // namespace binade::kernels
