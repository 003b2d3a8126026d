// The states in which a metric collects its data: MetricCount (exact integers), MetricSum (sums of
// real numbers), MetricRows (all values, for metrics that need them at once). Each is a member of a
// metric and registers itself there, so that the metric can be reset, combined over ranks and
// stored in a checkpoint without code of its own:
//
//   train::MetricSum error_{*this, "error"};
//
// Values on a device are added there; the host waits only when a value is read. A copy shares what
// was collected. One thread at a time may use a metric and its states.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::dist {
class Communicator;
}

namespace binade::train {

class Metric;

// One state, as the metric sees it.
class MetricState {
 public:
  explicit MetricState(std::string name) : name_(std::move(name)) {}
  virtual ~MetricState() = default;
  MetricState(const MetricState&) = delete;
  MetricState& operator=(const MetricState&) = delete;

  const std::string& name() const { return name_; }
  virtual void reset() = 0;
  // Collective: every rank gets what all ranks have collected, the same bits.
  virtual void reduce(dist::Communicator& group) = 0;
  virtual Tensor save() const = 0;  // on the CPU
  // Throws an Error that begins with `what` if load() cannot take the tensor.
  virtual void check_saved(const Tensor& saved, const std::string& what) const = 0;
  virtual void load(const Tensor& saved) = 0;

 private:
  std::string name_;
};

// `size` integers, exact. Over ranks they are added.
class MetricCount {
 public:
  // The first add() of a tensor sets a size of 0. Throws if the metric has a state of this name.
  MetricCount(Metric& metric, const std::string& name, int64_t size = 1);

  void add(int64_t number, int64_t index = 0);
  // x: integers or bool, [..., size], summed over all but the last dimension; if the size is 1 any
  // sizes, and all elements are summed.
  void add(const Tensor& x);
  int64_t value(int64_t index = 0) const;
  std::vector<int64_t> values() const;  // [size]
  int64_t size() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

// `size` sums of real numbers. Values on the CPU are added without any rounding, and a sum is
// rounded once, when it is read: it depends neither on the order of the values nor on how they were
// split into batches and ranks. On a device each add() sums in f64 there, and these sums are added
// without rounding. A sum with NaN, or with infinities of both signs, is NaN.
class MetricSum {
 public:
  MetricSum(Metric& metric, const std::string& name, int64_t size = 1);

  void add(double x, int64_t index = 0);
  // x: any dtype, sizes as for MetricCount. counted: bool, x's sizes, false for elements to leave
  // out; undefined: none.
  void add(const Tensor& x, const Tensor& counted = {});
  double value(int64_t index = 0) const;
  std::vector<double> values() const;  // [size]
  // Numbers whose sum is the exact sum: value(), then the rounded remainder, and so on. At least
  // one.
  std::vector<double> parts(int64_t index = 0) const;
  int64_t size() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

// Rows of numbers. Over ranks they are concatenated, in the order of the ranks, so every rank needs
// memory for all.
class MetricRows {
 public:
  MetricRows(Metric& metric, const std::string& name);

  // rows [n, ...]; in later calls only n may differ. They stay on their device.
  void add(const Tensor& rows);
  Tensor read() const;  // all, on the CPU; f32 [0] if there are none

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace binade::train
