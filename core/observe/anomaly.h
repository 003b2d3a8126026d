// AnomalyGuard: finds the first op that turns finite inputs into a result or gradient that is not
// finite.
//
//   AnomalyGuard guard;       // on this thread, while it exists
//   loss = model(x); loss.backward();   // throws: "anomaly: log gave 2 values ... in module head"
//
// Under a guard every op reads its result once more and waits for the device: use it to search, not
// to train. Infinite inputs are taken as intended (a mask): infinities computed from them are
// allowed, NaN is not. Without a guard ops cost nothing extra. The guard does not check in-place
// changes of tensors, optimizer steps, or work captured into a Graph.
#pragma once
#include <binade/core/observe/observer.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace binade {

struct AnomalyOptions {
  bool infinities = true;  // false: NaN only, for models that use -inf as a mask
  bool throws = true;      // false: continues, and keeps the first one in found()
  // False: an infinity that an op writes without arithmetic (masked_fill, where, full) is intended.
  // A cast counts as arithmetic, since it can overflow.
  bool written_infinities = true;
};

// A tensor that the anomalous op read: an input or, in backward, the gradient of its result.
struct AnomalyInput {
  DType dtype = DType::f32;
  Dims sizes = {};
  double largest = 0;                // magnitude; infinite or NaN if an element is
  std::optional<double> value = {};  // at the anomaly's index, if the shapes are equal
};

struct Anomaly {
  std::string op = {};
  std::string module = {};                // path; empty outside of modules
  bool in_backward = false;               // a gradient; else a result
  int64_t nan = 0, infinite = 0;          // how many values
  Dims sizes = {}, first = {};            // of the tensor; index of its first such value
  DType dtype = DType::f32;               // of the tensor
  std::vector<AnomalyInput> inputs = {};  // the floating ones
  std::string text = {};                  // all of this as one sentence, without the inputs
};

class AnomalyGuard final : public OpObserver {
 public:
  explicit AnomalyGuard(const AnomalyOptions& options = {}) : options_(options) {}

  const std::optional<Anomaly>& found() const { return found_; }

  void result(const OpEvent& event) override;
  void upstream(const GradientEvent& event) override;
  void gradients(const GradientEvent& event) override;

 private:
  enum class Worst : uint8_t { finite, infinite, nan };
  Worst worst_of(const Tensor& t) const;
  bool is_bad(const Tensor& t) const;
  bool is_intended(const OpEvent& event, Worst worst) const;
  void check_result(const OpEvent& event, size_t output);
  struct Finding {
    const Tensor& bad;
    std::span<const Tensor* const> inputs;  // what it was computed from
    std::string what, remark;
  };
  void report(Anomaly anomaly, const Finding& finding);

  AnomalyOptions options_;
  std::optional<Anomaly> found_;
  ObserverScope scope_{*this};
};

}  // namespace binade
