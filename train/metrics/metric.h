// Metric: one or several numbers for a whole data set, computed batch by batch. An example:
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
// update() must collect only in such states (train/metrics/metric_state.h): then ranks, checkpoints
// and devices need no further code. Copies of a metric share their states, as copies of a Tensor
// share their data, so you can read a metric that you passed to a Trainer by value. Two uses at the
// same time need two metrics.
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
  // The result since reset(): NaN if nothing was collected. Override value() or values(). Both wait
  // for a device.
  virtual double value() const;
  virtual NamedValues values() const;  // default: value() under name()
  virtual std::string report() const;  // a table or text for people, if there is one

  void reset();
  // Collective over the group: afterwards every rank has the data of all ranks, so values() are the
  // same bits everywhere. Call reset() before the next update(); or, to go on collecting, on all
  // ranks but one.
  void reduce(dist::Communicator& group);
  // The data collected so far on this rank, on the CPU; with load_state() a resumed run goes on
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

// A metric in a list, made from a metric, which is copied (the copy shares its states), or from a
// shared_ptr. May be null.
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
