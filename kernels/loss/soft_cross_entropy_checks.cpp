#include <binade/kernels/loss/soft_cross_entropy.h>

namespace binade::kernels {
namespace {

constexpr const char* kOp = "cross_entropy";

void check_vector(const char* name, const View& view, int64_t size, DType dtype) {
  check(view.dtype == dtype && view.sizes == Dims{size} && view.contiguous, kOp, ": got ", name,
        " ", view.dtype, " ", view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous ", dtype, " [", size, "]");
}

template <class Arguments>
void check_common(const Arguments& a) {
  check(is_floating(a.logits.dtype) && a.logits.dim() == 2, kOp, ": got logits ", a.logits.dtype,
        " ", a.logits.sizes, ", expected floating [rows, classes]");
  check(a.target.dtype == a.logits.dtype && a.target.sizes == a.logits.sizes, kOp, ": got target ",
        a.target.dtype, " ", a.target.sizes, ", expected probabilities ", a.logits.dtype, " ",
        a.logits.sizes);
  check(a.label_smoothing >= 0 && a.label_smoothing <= 1, kOp, ": got label_smoothing ",
        a.label_smoothing, ", expected 0 to 1");
  if (a.weight) {
    check_vector("weight", a.weight, a.logits.size(1), compute_dtype(a.logits.dtype));
  }
}

}  // namespace

void check_arguments(const SoftCrossEntropyForward& a) {
  check_common(a);
  check_vector("row_loss", a.row_loss, a.logits.size(0), compute_dtype(a.logits.dtype));
}

void check_arguments(const SoftCrossEntropyBackward& a) {
  check_common(a);
  check_vector("row_scale", a.row_scale, a.logits.size(0), compute_dtype(a.logits.dtype));
  check(a.dlogits.dtype == a.logits.dtype && a.dlogits.sizes == a.logits.sizes, kOp,
        ": got dlogits ", a.dlogits.dtype, " ", a.dlogits.sizes, ", expected ", a.logits.dtype, " ",
        a.logits.sizes);
}

}  // namespace binade::kernels
