#include <binade/kernels/loss/ctc_loss.h>

namespace binade::kernels {
namespace {

constexpr const char* kOp = "ctc_loss";

void check_array(const char* name, const View& view, DType dtype, const Dims& sizes,
                 bool contiguous = true) {
  check(view.dtype == dtype && view.sizes == sizes && (view.contiguous || !contiguous), kOp,
        ": got ", name, " ", view.dtype, " ", view.sizes,
        view.contiguous ? "" : " (not contiguous)", ", expected ", dtype, " ", sizes);
}

void check_common(const CtcSequences& s, const View& alpha, const View& nll) {
  const View& x = s.log_probs;
  check(x.dim() == 3 && x.contiguous && x.dtype == compute_dtype(x.dtype) && is_floating(x.dtype),
        kOp, ": got log_probs ", x.dtype, " ", x.sizes,
        ", expected contiguous f32 or f64 [T, N, C]");
  const int64_t samples = x.size(1);
  check(s.targets.dtype == DType::i64 && s.targets.dim() == 2 && s.targets.size(0) == samples, kOp,
        ": got targets ", s.targets.dtype, " ", s.targets.sizes, ", expected i64 [", samples,
        ", S]");
  check_array("input_lengths", s.input_lengths, DType::i64, {samples}, false);
  check_array("target_lengths", s.target_lengths, DType::i64, {samples}, false);
  check(s.blank >= 0 && s.blank < x.size(2), kOp, ": got blank ", s.blank, ", expected 0 to ",
        x.size(2) - 1, ", one of the classes");
  check_array("alpha", alpha, x.dtype, {samples, x.size(0), 2 * s.targets.size(1) + 1});
  check_array("nll", nll, x.dtype, {samples});
}

}  // namespace

void check_arguments(const CtcLossForward& a) {
  check_common(a.sequences, a.alpha, a.nll);
  check_array("loss", a.loss, a.sequences.log_probs.dtype, {a.sequences.log_probs.size(1)});
}

void check_arguments(const CtcLossBackward& a) {
  check_common(a.sequences, a.alpha, a.nll);
  const View& x = a.sequences.log_probs;
  check_array("dy", a.dy, x.dtype, {x.size(1)}, false);
  check(is_floating(a.dlogits.dtype) && compute_dtype(a.dlogits.dtype) == x.dtype &&
            a.dlogits.sizes == x.sizes,
        kOp, ": got dlogits ", a.dlogits.dtype, " ", a.dlogits.sizes, ", expected ", x.sizes,
        " of a dtype computed in ", x.dtype);
}

}  // namespace binade::kernels
