// RunningLoss: a sum of losses that does not wait for a device. On a GPU the losses of the last
// steps stay in a buffer there, which is read when it is full or when total() is called.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <optional>
#include <vector>

namespace binade::train {

class RunningLoss {
 public:
  explicit RunningLoss(double total = 0) : total_(total) {}
  // total += weight * loss; loss has one element.
  void add(const Tensor& loss, double weight, int64_t step);
  void add(double loss, double weight, int64_t step);
  double total() const;  // waits for the device

  struct BadLoss {
    int64_t step;
    double loss;
  };
  // The first loss that was not finite, among the losses that were read. Does not wait.
  const std::optional<BadLoss>& first_bad() const { return bad_; }

 private:
  struct Term {
    double weight;
    int64_t step;
  };
  void take(double loss, const Term& term) const;
  void read() const;

  mutable double total_;
  mutable std::optional<BadLoss> bad_;
  mutable std::vector<Term> unread_;
  Tensor buffer_;  // f64 [kUnread]: the losses of unread_; undefined on the CPU
};

}  // namespace binade::train
