#include <binade/kernels/base/dtype.h>

namespace binade::detail {
void unsupported_dtype(const char* op, DType got, const char* expected) {
  fail(op, ": got dtype ", got, ", expected ", expected);
}
}  // namespace binade::detail
