// Metric: a number, or some, of a whole data set, computed batch by batch. One of your own:
//
//   class Bias : public train::Metric {
//    public:
//     Bias() : Metric("bias") {}
//     void update(const train::StepOutput& step, const data::Batch& batch) override {
//       error_.add(step.output - batch["y"]);
//       count_.add(batch["y"].numel());
//     }
//     double value() const override { return error_.value() / count_.value(); }
//
//    private:
//     train::MetricSum error_{*this, "error"};
//     train::MetricCount count_{*this, "count"};
//   };
//
// All that update() collects goes into such states (train/metrics/metric_state.h), into nothing
// else: then ranks, checkpoints and devices need no further code. A copy of a metric shares what it
// collects, as a copy of a Tensor shares its data: a metric that was passed to a Trainer by value
// can be read afterwards. Two uses at the same time need two metrics.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/train/metrics/metric_state.h>
#include <binade/train/metrics/named_values.h>

#include <concepts>
#include <memory>
#include <string>
#include <vector>

namespace binade::data {
struct Batch;
}

namespace binade::train {

struct StepOutput;

class Metric {
 public:
  // The name is the key of its value: "accuracy" in logs, "validation_accuracy" for a validation.
  explicit Metric(std::string name);
  virtual ~Metric() = default;

  const std::string& name() const { return name_; }
  // Adds one batch. Throws if tensors are missing or do not fit; then it has added nothing.
  virtual void update(const StepOutput& step, const data::Batch& batch) = 0;
  // The result since reset(): NaN if nothing was collected. Overriding one of the two is
  // enough. Both wait for a device.
  virtual double value() const;
  virtual NamedValues values() const;  // default: value() under name()
  virtual std::string report() const;  // a table or text for people, if there is one

  void reset();
  // Collective over the group: afterwards every rank has what all ranks collected, so values() are
  // the same bits everywhere. Call reset() before the next update(); or, to go on collecting, on
  // all ranks but one.
  void reduce(dist::Communicator& group);
  // What was collected so far on this rank, on the CPU; with load_state() a resumed run goes on
  // with the same bits. Load throws if names or shapes do not fit, and then changes nothing.
  NamedTensors state() const;
  void load_state(const NamedTensors& state);

 protected:
  Metric(const Metric&) = default;
  Metric& operator=(const Metric&) = default;

 private:
  friend class MetricCount;
  friend class MetricSum;
  friend class MetricRows;
  void add_state(std::shared_ptr<MetricState> state);

  std::string name_;
  std::vector<std::shared_ptr<MetricState>> states_;
};

// A metric in a list: made of a metric, which is copied (the copy shares what it collects), or of a
// shared_ptr. Null when empty.
class MetricPtr {
 public:
  MetricPtr() = default;
  template <std::derived_from<Metric> T>
  MetricPtr(T metric) : metric_(std::make_shared<T>(std::move(metric))) {}  // NOLINT
  template <std::derived_from<Metric> T>
  MetricPtr(std::shared_ptr<T> metric) : metric_(std::move(metric)) {}  // NOLINT

  Metric* get() const { return metric_.get(); }
  Metric& operator*() const { return *metric_; }
  Metric* operator->() const { return metric_.get(); }
  explicit operator bool() const { return metric_ != nullptr; }

 private:
  std::shared_ptr<Metric> metric_;
};

}  // namespace binade::train
