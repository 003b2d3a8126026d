// Batch norm in training and group norm by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/group_norm.h>
#include <binade/kernels/norm/group_norm_internal.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade::kernels {
namespace {

// True if the dimensions after the channels are one range in memory: [n, channels, pixels].
bool has_pixels(const View& v) {
  for (int d = 2; d + 1 < v.dim(); ++d) {
    if (v.sizes[d] != 1 && v.strides[d] != v.strides[d + 1] * v.sizes[d + 1]) {
      return false;
    }
  }
  return true;
}

binade_tensor pixels_of(const View& v) {
  if (!v) {
    return {};
  }
  int64_t pixels = 1;
  for (int d = 2; d < v.dim(); ++d) {
    pixels *= v.sizes[d];
  }
  const int64_t stride = v.dim() > 2 ? v.strides[v.dim() - 1] : 1;
  return user_tensor(view_of(v.data, v.dtype, {v.sizes[0], v.sizes[1], pixels},
                             {v.strides[0], v.strides[1], stride}));
}

const char* channel_refusal(std::initializer_list<const View*> views, bool residual, bool relu) {
  if (residual || relu) {
    return "a norm with a residual or relu";
  }
  for (const View* view : views) {
    if (*view && !has_pixels(*view)) {
      return "images whose pixels are not one range";
    }
  }
  return nullptr;
}

template <class Forward>
binade_channel_norm_forward_call channel_forward(const Forward& a) {
  binade_channel_norm_forward_call arguments{};
  arguments.x = pixels_of(a.x);
  arguments.weight = user_tensor(a.weight);
  arguments.bias = user_tensor(a.bias);
  arguments.y = pixels_of(a.y);
  arguments.mean = user_tensor(a.mean);
  arguments.rstd = user_tensor(a.rstd);
  arguments.eps = a.eps;
  return arguments;
}

template <class Backward>
binade_channel_norm_backward_call channel_backward(const Backward& a) {
  binade_channel_norm_backward_call arguments{};
  arguments.x = pixels_of(a.x);
  arguments.dy = pixels_of(a.dy);
  arguments.weight = user_tensor(a.weight);
  arguments.mean = user_tensor(a.mean);
  arguments.rstd = user_tensor(a.rstd);
  arguments.dx = pixels_of(a.dx);
  arguments.dweight = user_tensor(a.dweight);
  arguments.dbias = user_tensor(a.dbias);
  return arguments;
}

}  // namespace

bool run_by_user(const BatchNormForward& a) {
  if (!has_user_function(UserFunction::batch_norm_forward, a.y.device)) {
    return false;
  }
  check_arguments(a);
  // mean_rest is not compared: it is the rounding error of the mean, which depends on the order.
  const View* outputs[] = {&a.y, &a.mean, &a.rstd, &a.variance};
  binade_channel_norm_forward_call arguments = channel_forward(a);
  arguments.variance = user_tensor(a.variance);
  arguments.mean_rest = user_tensor(a.mean_rest);
  return run_user({.function = UserFunction::batch_norm_forward,
                   .decisive = a.y,
                   .refused = channel_refusal({&a.x, &a.y}, bool(a.residual), a.relu),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         batch_norm_forward({.x = a.x,
                                             .weight = a.weight,
                                             .bias = a.bias,
                                             .y = out[0],
                                             .mean = out[1],
                                             .rstd = out[2],
                                             .eps = a.eps,
                                             .variance = out[3]});
                       }},
                  arguments);
}

bool run_by_user(const BatchNormBackward& a) {
  if (!has_user_function(UserFunction::batch_norm_backward, a.x.device)) {
    return false;
  }
  check_arguments(a);
  const View* outputs[] = {&a.dx, &a.dweight, &a.dbias};
  return run_user({.function = UserFunction::batch_norm_backward,
                   .decisive = a.x,
                   .refused = channel_refusal({&a.x, &a.dy, &a.dx}, bool(a.dresidual), bool(a.y)),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         batch_norm_backward({.x = a.x,
                                              .dy = a.dy,
                                              .weight = a.weight,
                                              .mean = a.mean,
                                              .rstd = a.rstd,
                                              .dx = out[0],
                                              .dweight = out[1],
                                              .dbias = out[2]});
                       }},
                  channel_backward(a));
}

bool run_by_user(const GroupNormForward& a) {
  if (!has_user_function(UserFunction::group_norm_forward, a.y.device)) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.y, &a.mean, &a.rstd};
  return run_user({.function = UserFunction::group_norm_forward,
                   .decisive = a.y,
                   .refused = channel_refusal({&a.x, &a.y}, false, false),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         group_norm_forward({.x = a.x,
                                             .weight = a.weight,
                                             .bias = a.bias,
                                             .y = out[0],
                                             .mean = out[1],
                                             .rstd = out[2],
                                             .eps = a.eps});
                       }},
                  channel_forward(a));
}

bool run_by_user(const GroupNormBackward& a) {
  if (!has_user_function(UserFunction::group_norm_backward, a.x.device)) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.dx, &a.dweight, &a.dbias};
  return run_user({.function = UserFunction::group_norm_backward,
                   .decisive = a.x,
                   .refused = channel_refusal({&a.x, &a.dy, &a.dx}, false, false),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         group_norm_backward({.x = a.x,
                                              .dy = a.dy,
                                              .weight = a.weight,
                                              .mean = a.mean,
                                              .rstd = a.rstd,
                                              .dx = out[0],
                                              .dweight = out[1],
                                              .dbias = out[2]});
                       }},
                  channel_backward(a));
}

}  // namespace binade::kernels
