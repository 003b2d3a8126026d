#include <binade/kernels/norm/group_norm_internal.h>

namespace binade::kernels {
namespace {

GroupNormSizes sizes_of(const char* op, const View& x, const View& mean) {
  check(is_floating(x.dtype) && x.dim() >= 2, op, ": got x ", x.dtype, " ", x.sizes,
        ", expected a floating tensor [N, C, ...]");
  const int64_t images = x.size(0), channels = x.size(1);
  const int64_t groups = mean.dim() == 2 ? mean.size(1) : 0;
  check(groups >= 1 && channels % groups == 0 && channels >= 1 && mean.size(0) == images, op,
        ": got x ", x.sizes, " and mean ", mean.sizes,
        ", expected mean [N, groups] with groups that divide C");
  constexpr int64_t kLimit = int64_t{1} << 31;
  check(images * channels < kLimit, op, ": got x ", x.sizes, ", expected N * C below 2^31");
  const int64_t planes = images * channels;
  return {images, channels, planes > 0 ? x.numel / planes : 0, groups, channels / groups};
}

void check_like(const char* op, const char* name, const View& view, const View& x) {
  check(view.sizes == x.sizes && view.dtype == x.dtype, op, ": got ", name, " ", view.dtype, " ",
        view.sizes, ", expected ", x.dtype, " ", x.sizes, " like x");
}

void check_compute_dtype(const char* op, const char* name, const View& view, const Dims& sizes,
                         const View& x) {
  const DType compute = compute_dtype(x.dtype);
  check(view.dtype == compute && view.sizes == sizes && view.contiguous, op, ": got ", name, " ",
        view.dtype, " ", view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous ", compute, " ", sizes);
}

void check_channels(const char* op, const char* name, const View& view, const View& x) {
  if (view) {
    check_compute_dtype(op, name, view, {x.size(1)}, x);
  }
}

}  // namespace

GroupNormSizes checked_sizes(const GroupNormForward& a) {
  const char* op = "group_norm";
  const GroupNormSizes sizes = sizes_of(op, a.x, a.mean);
  check_like(op, "y", a.y, a.x);
  check_channels(op, "weight", a.weight, a.x);
  check_channels(op, "bias", a.bias, a.x);
  check_compute_dtype(op, "mean", a.mean, {sizes.images, sizes.groups}, a.x);
  check_compute_dtype(op, "rstd", a.rstd, {sizes.images, sizes.groups}, a.x);
  return sizes;
}

GroupNormSizes checked_sizes(const GroupNormBackward& a) {
  const char* op = "group_norm backward";
  const GroupNormSizes sizes = sizes_of(op, a.x, a.mean);
  check_like(op, "dy", a.dy, a.x);
  if (a.dx) {
    check_like(op, "dx", a.dx, a.x);
  }
  check_channels(op, "weight", a.weight, a.x);
  check_compute_dtype(op, "mean", a.mean, {sizes.images, sizes.groups}, a.x);
  check_compute_dtype(op, "rstd", a.rstd, {sizes.images, sizes.groups}, a.x);
  check_channels(op, "dweight", a.dweight, a.x);
  check_channels(op, "dbias", a.dbias, a.x);
  return sizes;
}

}  // namespace binade::kernels
