// Layer norm and RMS norm by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade::kernels {
namespace {

const char* row_refusal(std::initializer_list<const View*> views) {
  for (const View* view : views) {
    if (*view && !view->contiguous) {
      return "tensors that are not row-major";
    }
  }
  return nullptr;
}

}  // namespace

bool run_by_user(const LayerNormForward& a) {
  const UserFunction function =
      a.mean ? UserFunction::layer_norm_forward : UserFunction::rms_norm_forward;
  if (!has_user_function(function, a.y.device)) {
    return false;
  }
  check_arguments(a);
  const View* outputs[] = {&a.y, &a.mean, &a.rstd};
  binade_layer_norm_forward_call arguments{};
  arguments.x = user_tensor(a.x);
  arguments.weight = user_tensor(a.weight);
  arguments.bias = user_tensor(a.bias);
  arguments.y = user_tensor(a.y);
  arguments.mean = user_tensor(a.mean);
  arguments.rstd = user_tensor(a.rstd);
  arguments.eps = a.eps;
  return run_user({.function = function,
                   .decisive = a.y,
                   .refused = row_refusal({&a.x, &a.y}),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         layer_norm_forward({.x = a.x,
                                             .weight = a.weight,
                                             .bias = a.bias,
                                             .y = out[0],
                                             .mean = out[1],
                                             .rstd = out[2],
                                             .eps = a.eps});
                       }},
                  arguments);
}

bool run_by_user(const LayerNormBackward& a) {
  const UserFunction function =
      a.mean ? UserFunction::layer_norm_backward : UserFunction::rms_norm_backward;
  if (!has_user_function(function, a.x.device)) {
    return false;
  }
  check_arguments(a);
  const View* outputs[] = {&a.dx, &a.dweight, &a.dbias};
  binade_layer_norm_backward_call arguments{};
  arguments.x = user_tensor(a.x);
  arguments.dy = user_tensor(a.dy);
  arguments.weight = user_tensor(a.weight);
  arguments.mean = user_tensor(a.mean);
  arguments.rstd = user_tensor(a.rstd);
  arguments.dx = user_tensor(a.dx);
  arguments.dweight = user_tensor(a.dweight);
  arguments.dbias = user_tensor(a.dbias);
  return run_user({.function = function,
                   .decisive = a.x,
                   .refused = row_refusal({&a.x, &a.dy, &a.dx}),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         layer_norm_backward({.x = a.x,
                                              .dy = a.dy,
                                              .weight = a.weight,
                                              .mean = a.mean,
                                              .rstd = a.rstd,
                                              .dx = out[0],
                                              .dweight = out[1],
                                              .dbias = out[2]});
                       }},
                  arguments);
}

}  // namespace binade::kernels
