#include <binade/kernels/loss/cross_entropy.h>

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
void check_common(const Arguments& c) {
  check(is_floating(c.logits.dtype) && c.logits.dim() == 2, kOp, ": got logits ", c.logits.dtype,
        " ", c.logits.sizes, ", expected floating [rows, classes]");
  const int64_t rows = c.logits.size(0), classes = c.logits.size(1);
  check(c.target.dtype == DType::i64 && c.target.sizes == Dims{rows}, kOp, ": got target ",
        c.target.dtype, " ", c.target.sizes, ", expected i64 [", rows, "]");
  check(classes > 0 || rows == 0, kOp, ": got logits ", c.logits.sizes,
        ", expected a class or more");
  check(c.label_smoothing >= 0 && c.label_smoothing <= 1, kOp, ": got label_smoothing ",
        c.label_smoothing, ", expected 0 to 1");
  if (c.weight) {
    check_vector("weight", c.weight, classes, compute_dtype(c.logits.dtype));
  }
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
  check_common(a);
  check_row_vectors(a.logits,
                    {{"row_loss", &a.row_loss}, {"row_weight", &a.row_weight}, {"lse", &a.lse}});
}

void check_arguments(const CrossEntropyBackward& a) {
  check_common(a);
  check_row_vectors(a.logits, {{"lse", &a.lse}, {"row_scale", &a.row_scale}});
  check_gradient(a.logits, a.dlogits);
}

void check_arguments(const CrossEntropyForwardBackward& a) {
  check_common(a);
  check_row_vectors(a.logits, {{"row_scale", &a.row_scale},
                               {"row_loss", &a.row_loss},
                               {"row_weight", &a.row_weight},
                               {"lse", &a.lse}});
  check_gradient(a.logits, a.dlogits);
}

}  // namespace binade::kernels
