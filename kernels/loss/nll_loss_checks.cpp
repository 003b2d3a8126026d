#include <binade/kernels/loss/nll_loss.h>

namespace binade::kernels {
namespace {

constexpr const char* kOp = "nll_loss";

void check_array(const char* name, const View& view, const Dims& sizes, DType dtype) {
  check(view.dtype == dtype && view.sizes == sizes && view.contiguous, kOp, ": got ", name, " ",
        view.dtype, " ", view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous ", dtype, " ", sizes);
}

Dims check_common(const char* name, const View& log_probs, const View& target, const View& weight) {
  check(is_floating(log_probs.dtype) && log_probs.dim() == 3, kOp, ": got ", name, " ",
        log_probs.dtype, " ", log_probs.sizes, ", expected floating [n, classes, inner]");
  const Dims rows{log_probs.size(0), log_probs.size(2)};
  check(target.dtype == DType::i64 && target.sizes == rows, kOp, ": got target ", target.dtype, " ",
        target.sizes, ", expected i64 ", rows);
  if (weight) {
    check_array("weight", weight, {log_probs.size(1)}, compute_dtype(log_probs.dtype));
  }
  return rows;
}

}  // namespace

void check_arguments(const NllLossForward& a) {
  const Dims rows = check_common("log_probs", a.log_probs, a.target, a.weight);
  check_array("row_loss", a.row_loss, rows, compute_dtype(a.log_probs.dtype));
  check_array("row_weight", a.row_weight, rows, compute_dtype(a.log_probs.dtype));
}

void check_arguments(const NllLossBackward& a) {
  const Dims rows = check_common("dlog_probs", a.dlog_probs, a.target, a.weight);
  check_array("row_scale", a.row_scale, rows, compute_dtype(a.dlog_probs.dtype));
}

}  // namespace binade::kernels
