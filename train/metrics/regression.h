// Metrics of regression. Output and target have the same sizes, but one of them may have another
// dimension of size 1 at its end: [N, 1] beside [N]. The output is floating, the target has any
// dtype; both are compared in f64. Every element counts.
#pragma once
#include <binade/train/metrics/target_metric.h>

namespace binade::train {

struct RegressionOptions {
  std::string name = {};  // of the value; empty: the metric's own
  // See MetricFields.
  std::string output = {};
  std::string target = "labels";
  std::string mask = {};
};

class RegressionMetric : public TargetMetric {
 protected:
  RegressionMetric(const char* default_name, const RegressionOptions& options);
  // f64, of the same sizes; `counted` (bool) may be undefined.
  virtual void add_values(const Tensor& output, const Tensor& target, const Tensor& counted) = 0;

 private:
  void add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) final;
};

// "mae": the mean of |output - target|.
class MeanAbsoluteError : public RegressionMetric {
 public:
  explicit MeanAbsoluteError(const RegressionOptions& options = {})
      : RegressionMetric("mae", options) {}
  double value() const override;

 private:
  void add_values(const Tensor& output, const Tensor& target, const Tensor& counted) override;

  MetricSum sum_{*this, "sum"};
  MetricCount count_{*this, "count"};
};

// "mse": the mean of (output - target)^2.
class MeanSquaredError : public RegressionMetric {
 public:
  explicit MeanSquaredError(const RegressionOptions& options = {})
      : RegressionMetric("mse", options) {}
  double value() const override;
  double root() const;  // its square root

 protected:
  MeanSquaredError(const char* default_name, const RegressionOptions& options)
      : RegressionMetric(default_name, options) {}

 private:
  void add_values(const Tensor& output, const Tensor& target, const Tensor& counted) override;

  MetricSum sum_{*this, "sum"};
  MetricCount count_{*this, "count"};
};

// "rmse": its square root.
class RootMeanSquaredError : public MeanSquaredError {
 public:
  explicit RootMeanSquaredError(const RegressionOptions& options = {})
      : MeanSquaredError("rmse", options) {}
  double value() const override { return root(); }
};

enum class R2Average : uint8_t {
  uniform,            // the mean over the columns
  variance_weighted,  // weighted by the variance of the column's targets
};

// "r2", the coefficient of determination: 1 - sum (target - output)^2 / sum (target - mean)^2, for
// each column of [N, ...], then the mean over the columns. A column whose targets are all equal has
// -inf, or NaN if the outputs equal them; a column with fewer than two targets has NaN.
class R2 : public RegressionMetric {
 public:
  explicit R2(R2Average average = R2Average::uniform, const RegressionOptions& options = {});
  explicit R2(const RegressionOptions& options) : R2(R2Average::uniform, options) {}
  double value() const override;
  std::vector<double> per_column() const;

 private:
  void add_values(const Tensor& output, const Tensor& target, const Tensor& counted) override;
  struct Column;
  std::vector<Column> columns() const;

  R2Average average_;
  MetricSum residual_{*this, "residual", 0}, sum_{*this, "sum", 0}, square_{*this, "square", 0};
  MetricCount count_{*this, "count", 0};
};

}  // namespace binade::train
