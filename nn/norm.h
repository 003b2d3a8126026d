// Normalisation layers. Parameters and statistics stay f32 under the policy `mixed`.
#pragma once
#include <binade/nn/module.h>

#include <optional>

namespace binade {
struct BatchNormOptions;  // of the op: core/ops/batch_norm.h
}

namespace binade::nn {

struct BatchNorm2dOptions {
  int64_t channels;
  double eps = 1e-5;
  double momentum = 0.1;  // share of the new batch in the running statistics
};
using BatchNorm1dOptions = BatchNorm2dOptions;

// The base of BatchNorm1d and BatchNorm2d.
class BatchNorm : public Module {
 public:
  Tensor weight, bias;               // [channels]
  Tensor running_mean, running_var;  // [channels]

 protected:
  BatchNorm(const char* name, const BatchNorm2dOptions& options);
  virtual void check_input(const Tensor& x) const = 0;
  // relu?(norm(x) + residual?); the residual has the sizes and dtype of x.
  Tensor normalize(const Tensor& x, const Tensor& residual = {}, bool relu = false);

 private:
  BatchNormOptions op_options(const Tensor& residual, bool relu) const;
  bool synchronize(RankGroup* group) override;

  friend class Fusion;
  BatchNorm2dOptions options_;
  RankGroup* group_ = nullptr;
};

// x [N, channels] or [N, channels, L].
class BatchNorm1d : public BatchNorm {
 public:
  using Options = BatchNorm1dOptions;
  explicit BatchNorm1d(const BatchNorm1dOptions& options) : BatchNorm("BatchNorm1d", options) {}
  BatchNorm1d(Module& parent, std::string_view name, const BatchNorm1dOptions& options)
      : BatchNorm1d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return normalize(x); }

 private:
  void check_input(const Tensor& x) const override;
};

// x [N, channels, H, W].
class BatchNorm2d : public BatchNorm {
 public:
  using Options = BatchNorm2dOptions;
  explicit BatchNorm2d(const BatchNorm2dOptions& options) : BatchNorm("BatchNorm2d", options) {}
  BatchNorm2d(Module& parent, std::string_view name, const BatchNorm2dOptions& options)
      : BatchNorm2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return normalize(x); }

 private:
  void check_input(const Tensor& x) const override;
};

struct LayerNormOptions {
  Dims normalized_shape;  // the last sizes of x; one number: the last dimension only
  double eps = 1e-5;
  bool affine = true;  // weight and bias
  bool bias = true;
};

class LayerNorm : public Module {
 public:
  using Options = LayerNormOptions;
  explicit LayerNorm(const LayerNormOptions& options);
  LayerNorm(Module& parent, std::string_view name, const LayerNormOptions& options)
      : LayerNorm(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;  // [normalized_shape] or undefined

 private:
  LayerNormOptions options_;
};

struct RMSNormOptions {
  Dims normalized_shape;
  std::optional<double> eps = std::nullopt;  // the machine epsilon of the statistics
  bool affine = true;                        // weight
};

class RMSNorm : public Module {
 public:
  using Options = RMSNormOptions;
  explicit RMSNorm(const RMSNormOptions& options);
  RMSNorm(Module& parent, std::string_view name, const RMSNormOptions& options) : RMSNorm(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [normalized_shape] or undefined

 private:
  RMSNormOptions options_;
};

struct GroupNormOptions {
  int64_t groups;
  int64_t channels;
  double eps = 1e-5;
  bool affine = true;
};

// x [N, channels, ...].
class GroupNorm : public Module {
 public:
  using Options = GroupNormOptions;
  explicit GroupNorm(const GroupNormOptions& options);
  GroupNorm(Module& parent, std::string_view name, const GroupNormOptions& options)
      : GroupNorm(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;  // [channels] or undefined

 private:
  GroupNormOptions options_;
};

struct InstanceNorm2dOptions {
  int64_t channels;
  double eps = 1e-5;
  bool affine = false;
};
using InstanceNorm1dOptions = InstanceNorm2dOptions;

// The base of InstanceNorm1d and InstanceNorm2d. It has no running statistics, so training and
// evaluation are the same.
class InstanceNorm : public Module {
 public:
  Tensor weight, bias;  // [channels] or undefined

 protected:
  InstanceNorm(const char* name, const InstanceNorm2dOptions& options);
  Tensor normalize(const char* name, int dim, const Tensor& x) const;

 private:
  InstanceNorm2dOptions options_;
};

// x [N, channels, L].
class InstanceNorm1d : public InstanceNorm {
 public:
  using Options = InstanceNorm1dOptions;
  explicit InstanceNorm1d(const InstanceNorm1dOptions& options)
      : InstanceNorm("InstanceNorm1d", options) {}
  InstanceNorm1d(Module& parent, std::string_view name, const InstanceNorm1dOptions& options)
      : InstanceNorm1d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return normalize("InstanceNorm1d", 3, x); }
};

// x [N, channels, H, W].
class InstanceNorm2d : public InstanceNorm {
 public:
  using Options = InstanceNorm2dOptions;
  explicit InstanceNorm2d(const InstanceNorm2dOptions& options)
      : InstanceNorm("InstanceNorm2d", options) {}
  InstanceNorm2d(Module& parent, std::string_view name, const InstanceNorm2dOptions& options)
      : InstanceNorm2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return normalize("InstanceNorm2d", 4, x); }
};

}  // namespace binade::nn
