// Errors for bad values inside tensors, such as an index out of range: one typed error on every
// device. The CPU checks before it computes. A device kernel cannot throw, and the host does not
// wait for it after every call: the kernel writes zeros (cross entropy: NaN) where it used the bad
// value and stores a report. The next synchronisation (item(), a copy to the host, synchronize())
// throws it.
#pragma once
#include <binade/kernels/base/view.h>

namespace binade::kernels {

class IndexError : public Error {
 public:
  IndexError(const std::string& message, const char* op, int64_t value)
      : Error(message), op_(op), value_(value) {}
  const char* op() const { return op_; }
  int64_t value() const { return value_; }

 private:
  const char* op_;
  int64_t value_;
};

// The same for values that are not integers.
class ValueError : public Error {
 public:
  ValueError(const std::string& message, const char* op, double value)
      : Error(message), op_(op), value_(value) {}
  const char* op() const { return op_; }
  double value() const { return value_; }

 private:
  const char* op_;
  double value_;
};

// Throws unless all elements of `index` (i64, on the CPU, any strides) are in 0 .. bound - 1.
// `what` is the name of the argument.
struct IndexRange {
  const char* op;
  const char* what;
  int64_t bound;
};
void check_indices(const View& index, const IndexRange& range);

}  // namespace binade::kernels
