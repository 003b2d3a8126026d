#include <binade/kernels/norm/batch_norm.h>

namespace binade::kernels {
namespace {

void check_like(const char* op, const char* name, const View& view, const View& x) {
  check(view.sizes == x.sizes && view.dtype == x.dtype, op, ": got ", name, " ", view.dtype, " ",
        view.sizes, ", expected ", x.dtype, " ", x.sizes, " like x");
}

void check_input(const char* op, const View& x) {
  check(is_floating(x.dtype) && x.dim() >= 2, op, ": got x ", x.dtype, " ", x.sizes,
        ", expected a floating tensor [N, C, ...]");
}

void check_channels(const char* op, const char* name, const View& view, int64_t channels,
                    DType compute) {
  check(view.dtype == compute && view.sizes == Dims{channels} && view.contiguous, op, ": got ",
        name, " ", view.dtype, " ", view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous ", compute, " [", channels, "], one per channel");
}

void check_optional(const char* op, const char* name, const View& view, int64_t channels,
                    DType compute) {
  if (view) {
    check_channels(op, name, view, channels, compute);
  }
}

void check_residual(const char* op, const View& residual, const View& x) {
  if (residual) {
    check_like(op, "residual", residual, x);
  }
}

void check_backward(const char* op, const View& x, const View& dy, const View& dx) {
  check_input(op, x);
  check_like(op, "dy", dy, x);
  if (dx) {
    check_like(op, "dx", dx, x);
  }
}

}  // namespace

void check_arguments(const BatchNormForward& a) {
  const char* op = "batch_norm";
  check_input(op, a.x);
  check_like(op, "y", a.y, a.x);
  const int64_t channels = a.x.size(1);
  const DType compute = compute_dtype(a.x.dtype);
  check_optional(op, "weight", a.weight, channels, compute);
  check_optional(op, "bias", a.bias, channels, compute);
  check_channels(op, "mean", a.mean, channels, compute);
  check_channels(op, "rstd", a.rstd, channels, compute);
  check_optional(op, "variance", a.variance, channels, compute);
  check_optional(op, "mean_rest", a.mean_rest, channels, compute);
  check_residual(op, a.residual, a.x);
}

void check_arguments(const BatchNormInference& a) {
  const char* op = "batch_norm";
  check_input(op, a.x);
  check_like(op, "y", a.y, a.x);
  const int64_t channels = a.x.size(1);
  const DType compute = compute_dtype(a.x.dtype);
  check_optional(op, "weight", a.weight, channels, compute);
  check_optional(op, "bias", a.bias, channels, compute);
  check_channels(op, "running_mean", a.running_mean, channels, compute);
  check_channels(op, "running_var", a.running_var, channels, compute);
  check_residual(op, a.residual, a.x);
}

void check_arguments(const BatchNormBackward& a) {
  const char* op = "batch_norm backward";
  check_backward(op, a.x, a.dy, a.dx);
  const int64_t channels = a.x.size(1);
  const DType compute = compute_dtype(a.x.dtype);
  check_optional(op, "weight", a.weight, channels, compute);
  check_channels(op, "mean", a.mean, channels, compute);
  check_channels(op, "rstd", a.rstd, channels, compute);
  check_optional(op, "dweight", a.dweight, channels, compute);
  check_optional(op, "dbias", a.dbias, channels, compute);
  if (a.y) {
    check_like(op, "y", a.y, a.x);
  }
  if (a.dresidual) {
    check_like(op, "dresidual", a.dresidual, a.x);
    check(bool(a.y), op, ": got dresidual without y, expected both: without relu it is dy");
  }
}

void check_arguments(const BatchNormInferenceBackward& a) {
  const char* op = "batch_norm backward";
  check_backward(op, a.x, a.dy, a.dx);
  const int64_t channels = a.x.size(1);
  const DType compute = compute_dtype(a.x.dtype);
  check_optional(op, "weight", a.weight, channels, compute);
  check_channels(op, "running_mean", a.running_mean, channels, compute);
  check_channels(op, "running_var", a.running_var, channels, compute);
  check_optional(op, "dweight", a.dweight, channels, compute);
  check_optional(op, "dbias", a.dbias, channels, compute);
}

void check_arguments(const BatchNormRunning& a) {
  const char* op = "batch_norm";
  const DType compute = a.running_mean.dtype;
  check(compute == DType::f32 || compute == DType::f64, op, ": got running_mean ", compute,
        ", expected f32 or f64");
  const int64_t channels = a.running_mean.numel;
  check_channels(op, "running_mean", a.running_mean, channels, compute);
  check_channels(op, "running_var", a.running_var, channels, compute);
  check_channels(op, "mean", a.mean, channels, compute);
  check_channels(op, "variance", a.variance, channels, compute);
  check(a.count >= 2, op, ": got ", a.count,
        " value per channel in training, expected 2 or more for an unbiased variance");
}

}  // namespace binade::kernels
