// Values in tensors that are out of range, indices and others: one typed error on every device. The
// CPU checks before it computes. A device cannot stop, and nobody waits for it in every call: its
// kernels leave zeros (cross entropy: NaN) where the bad value was used and write a report, which
// the next synchronisation (item(), a copy to the host, synchronize()) throws as this error.
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

// The same of values that are not integers.
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

// What stands for "no value is exempt".
inline constexpr int64_t kNoExemption = INT64_MIN;

// Throws unless all elements of `index` (i64, on the CPU, any strides) are 0 to bound - 1, or
// `exempt`. `what` is the name of the argument.
struct IndexRange {
  const char* op;
  const char* what;
  int64_t bound;
  int64_t exempt = kNoExemption;
};
void check_indices(const View& index, const IndexRange& range);

}  // namespace binade::kernels
