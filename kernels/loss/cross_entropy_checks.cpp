// The checks of cross_entropy with targets that are classes or probabilities.
#include <binade/kernels/loss/cross_entropy.h>
#include <binade/kernels/loss/soft_cross_entropy.h>

#include <initializer_list>
#include <utility>

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
  check(a.label_smoothing >= 0 && a.label_smoothing <= 1, kOp, ": got label_smoothing ",
        a.label_smoothing, ", expected 0 to 1");
  if (a.weight) {
    check_vector("weight", a.weight, a.logits.size(1), compute_dtype(a.logits.dtype));
  }
}

template <class Arguments>
void check_classes(const Arguments& a) {
  check_common(a);
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  check(a.target.dtype == DType::i64 && a.target.sizes == Dims{rows}, kOp, ": got target ",
        a.target.dtype, " ", a.target.sizes, ", expected i64 [", rows, "]");
  check(classes > 0 || rows == 0, kOp, ": got logits ", a.logits.sizes,
        ", expected a class or more");
}

template <class Arguments>
void check_probabilities(const Arguments& a) {
  check_common(a);
  check(a.target.dtype == a.logits.dtype && a.target.sizes == a.logits.sizes, kOp, ": got target ",
        a.target.dtype, " ", a.target.sizes, ", expected probabilities ", a.logits.dtype, " ",
        a.logits.sizes);
}

void check_row_vectors(const View& logits,
                       std::initializer_list<std::pair<const char*, const View*>> vectors) {
  for (const auto& [name, view] : vectors) {
    check_vector(name, *view, logits.size(0), compute_dtype(logits.dtype));
  }
}

void check_gradient(const View& logits, const View& dlogits) {
  check(dlogits.sizes == logits.sizes && dlogits.dtype == logits.dtype, kOp, ": got dlogits ",
        dlogits.dtype, " ", dlogits.sizes, ", expected ", logits.dtype, " ", logits.sizes);
}

}  // namespace

void check_arguments(const CrossEntropyForward& a) {
  check_classes(a);
  check_row_vectors(a.logits,
                    {{"row_loss", &a.row_loss}, {"row_weight", &a.row_weight}, {"lse", &a.lse}});
}

void check_arguments(const CrossEntropyBackward& a) {
  check_classes(a);
  check_row_vectors(a.logits, {{"lse", &a.lse}, {"row_scale", &a.row_scale}});
  check_gradient(a.logits, a.dlogits);
}

void check_arguments(const CrossEntropyForwardBackward& a) {
  check_classes(a);
  check_row_vectors(a.logits, {{"row_scale", &a.row_scale},
                               {"row_loss", &a.row_loss},
                               {"row_weight", &a.row_weight},
                               {"lse", &a.lse}});
  check_gradient(a.logits, a.dlogits);
}

void check_arguments(const SoftCrossEntropyForward& a) {
  check_probabilities(a);
  check_row_vectors(a.logits, {{"row_loss", &a.row_loss}});
}

void check_arguments(const SoftCrossEntropyBackward& a) {
  check_probabilities(a);
  check_row_vectors(a.logits, {{"row_scale", &a.row_scale}});
  check_gradient(a.logits, a.dlogits);
}

}  // namespace binade::kernels
