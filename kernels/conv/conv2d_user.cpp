// Convolution by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/conv2d_internal.h>
#include <binade/kernels/gemm/user_epilogue_internal.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade::kernels {
namespace {

binade_conv2d_call conv2d_arguments(const View& x, const View& w, const View& y,
                                    const Conv2dGeometry& geometry) {
  binade_conv2d_call arguments{};
  arguments.x = user_tensor(x);
  arguments.w = user_tensor(w);
  arguments.y = user_tensor(y);
  for (const int axis : {0, 1}) {
    arguments.stride[axis] = geometry.stride[axis];
    arguments.padding[axis] = geometry.padding[axis];
    arguments.dilation[axis] = geometry.dilation[axis];
  }
  arguments.groups = geometry.groups;
  return arguments;
}

// A vector of the channels, to be added to [N, channels, H, W].
View over_pixels(const View& bias) {
  if (!bias) {
    return kNoView;
  }
  View view = view_of(bias.data, bias.dtype, {bias.sizes[0], 1, 1}, {bias.strides[0], 0, 0});
  view.device = bias.device;
  return view;
}

bool nothing_to_sum(const View& a, const View& b) { return a.numel == 0 || b.numel == 0; }

}  // namespace

bool run_by_user(const Conv2dForward& a) {
  if (!has_user_function(UserFunction::conv2d_forward, a.y.device) || nothing_to_sum(a.x, a.w)) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.y};
  const bool done =
      run_user({.function = UserFunction::conv2d_forward,
                .decisive = a.y,
                .refused = user_epilogue_refusal(a.epilogue),
                .outputs = outputs,
                .own =
                    [&](std::span<const View> out) {
                      conv2d_forward({.x = a.x, .w = a.w, .y = out[0], .geometry = a.geometry});
                    }},
               conv2d_arguments(a.x, a.w, a.y, a.geometry));
  if (done) {
    apply_user_epilogue(a.epilogue, over_pixels(a.epilogue.bias), a.y, a.y);
  }
  return done;
}

bool run_by_user(const Conv2dBackwardData& a) {
  if (!has_user_function(UserFunction::conv2d_backward_data, a.dx.device) ||
      nothing_to_sum(a.dy, a.w)) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.dx};
  const bool done = run_user(
      {.function = UserFunction::conv2d_backward_data,
       .decisive = a.dx,
       .outputs = outputs,
       .own =
           [&](std::span<const View> out) {
             conv2d_backward_data({.dy = a.dy, .w = a.w, .dx = out[0], .geometry = a.geometry});
           }},
      conv2d_arguments(a.dx, a.w, a.dy, a.geometry));
  if (done) {
    apply_user_epilogue({}, over_pixels(a.bias), a.dx, a.dx);
  }
  return done;
}

bool run_by_user(const Conv2dBackwardWeight& a) {
  if (!has_user_function(UserFunction::conv2d_backward_weight, a.dw.device) ||
      nothing_to_sum(a.x, a.dy)) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.dw};
  return run_user(
      {.function = UserFunction::conv2d_backward_weight,
       .decisive = a.dw,
       .outputs = outputs,
       .own =
           [&](std::span<const View> out) {
             conv2d_backward_weight({.x = a.x, .dy = a.dy, .dw = out[0], .geometry = a.geometry});
           }},
      conv2d_arguments(a.x, a.dw, a.dy, a.geometry));
}

}  // namespace binade::kernels
