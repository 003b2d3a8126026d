#include <binade/kernels/loss/pointwise_loss.h>

namespace binade::kernels {
namespace {

void check_like_x(const char* op, const char* name, const View& x, const View& view) {
  check(view.dtype == x.dtype && view.sizes == x.sizes, op, ": got ", name, " ", view.dtype, " ",
        view.sizes, ", expected ", x.dtype, " ", x.sizes, " as the input");
}

template <class Arguments>
void check_common(const Arguments& a) {
  const char* op = to_string(a.op);
  check(is_floating(a.x.dtype), op, ": got dtype ", a.x.dtype, ", expected a floating dtype");
  check_like_x(op, "a target", a.x, a.t);
  for (const View* weight : {&a.weight, &a.pos_weight}) {
    check(!*weight || weight->dtype == a.x.dtype, op, ": got a weight of dtype ", weight->dtype,
          ", expected ", a.x.dtype);
  }
  check(!a.pos_weight || a.op == PointwiseLoss::bce_with_logits, op,
        ": got a pos_weight, which bce_with_logits alone has");
}

}  // namespace

void check_arguments(const PointwiseLossForward& a) {
  check_common(a);
  const char* op = to_string(a.op);
  check(a.y.dtype == compute_dtype(a.x.dtype), op, ": got a result of dtype ", a.y.dtype,
        ", expected ", compute_dtype(a.x.dtype));
  check(a.each ? a.y.sizes == a.x.sizes : a.y.numel == 1, op, ": got a result of sizes ", a.y.sizes,
        ", expected ", a.each ? to_string(a.x.sizes) : "one element");
}

void check_arguments(const PointwiseLossBackward& a) {
  check_common(a);
  const char* op = to_string(a.op);
  check(a.dy.dtype == compute_dtype(a.x.dtype), op, ": got dy of dtype ", a.dy.dtype, ", expected ",
        compute_dtype(a.x.dtype));
  for (const View* out : {&a.dx, &a.dt}) {
    if (*out) {
      check_like_x(op, "a gradient", a.x, *out);
    }
  }
}

}  // namespace binade::kernels
