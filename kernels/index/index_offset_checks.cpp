#include <binade/kernels/index/index_offset.h>

namespace binade::kernels {

void check_arguments(const IndexOffset& a) {
  check(a.index.dtype == DType::i64 && a.y.dtype == DType::i64 && a.y.contiguous &&
            broadcast_sizes(a.op, a.y.sizes, a.index.sizes) == a.y.sizes,
        a.op, ": got an index ", a.index.dtype, " ", a.index.sizes, " and offsets ", a.y.dtype, " ",
        a.y.sizes, ", expected i64 that broadcasts to contiguous i64");
}

}  // namespace binade::kernels
