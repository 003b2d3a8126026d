// Softmax by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/softmax/softmax.h>
#include <binade/kernels/user/user_kernels_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

// Accepts dense rows: the last dimension of row-major tensors, or one followed only by sizes of 1.
const char* softmax_refusal(const View& x, int dim, std::initializer_list<const View*> views) {
  for (const View* view : views) {
    if (!view->contiguous) {
      return "tensors that are not row-major";
    }
  }
  for (int d = dim + 1; d < x.dim(); ++d) {
    if (x.sizes[d] != 1) {
      return "another dimension than the last";
    }
  }
  return nullptr;
}

Dims softmax_rows(const View& x, int dim) {
  const int64_t cols = x.dim() == 0 ? 1 : x.sizes[dim];
  return {x.numel / std::max<int64_t>(1, cols), cols};
}

}  // namespace

bool run_by_user(const SoftmaxForward& a) {
  if (!has_user_function(UserFunction::softmax_forward, a.y.device)) {
    return false;
  }
  check_arguments(a);
  const View* outputs[] = {&a.y};
  const Dims rows = softmax_rows(a.x, a.dim);
  return run_user(
      {.function = UserFunction::softmax_forward,
       .decisive = a.y,
       .refused = softmax_refusal(a.x, a.dim, {&a.x, &a.y}),
       .outputs = outputs,
       .own =
           [&](std::span<const View> out) {
             softmax_forward({.x = a.x, .y = out[0], .dim = a.dim, .log = a.log});
           }},
      binade_softmax_forward_call{user_tensor(a.x, rows), user_tensor(a.y, rows), a.log});
}

bool run_by_user(const SoftmaxBackward& a) {
  if (!has_user_function(UserFunction::softmax_backward, a.dx.device)) {
    return false;
  }
  check_arguments(a);
  const View* outputs[] = {&a.dx};
  const Dims rows = softmax_rows(a.y, a.dim);
  return run_user(
      {.function = UserFunction::softmax_backward,
       .decisive = a.dx,
       .refused = softmax_refusal(a.y, a.dim, {&a.y, &a.dy, &a.dx}),
       .outputs = outputs,
       .own =
           [&](std::span<const View> out) {
             softmax_backward({.y = a.y, .dy = a.dy, .dx = out[0], .dim = a.dim, .log = a.log});
           }},
      binade_softmax_backward_call{user_tensor(a.y, rows), user_tensor(a.dy, rows),
                                   user_tensor(a.dx, rows), a.log});
}

}  // namespace binade::kernels
