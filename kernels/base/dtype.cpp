#include <binade/kernels/base/dtype.h>

#include <ostream>

namespace binade {

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << to_string(dtype); }

namespace detail {
void unsupported_dtype(const char* op, DType got, const char* expected) {
  fail(op, ": got dtype ", got, ", expected ", expected);
}
}  // namespace detail
}  // namespace binade
