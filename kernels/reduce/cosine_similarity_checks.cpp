#include <binade/kernels/reduce/cosine_similarity.h>

#include <initializer_list>

namespace binade::kernels {
namespace {

constexpr const char* kOp = "cosine_similarity";

template <class Arguments>
void check_common(const Arguments& a, std::initializer_list<const View*> statistics) {
  check(is_floating(a.x1.dtype) && a.dim >= 0 && a.dim < a.x1.dim(), kOp, ": got x1 ", a.x1.dtype,
        " ", a.x1.sizes, " and dimension ", a.dim, ", expected a floating tensor with it");
  check(a.x2.dtype == a.x1.dtype && a.x2.sizes == a.x1.sizes, kOp, ": got x2 ", a.x2.dtype, " ",
        a.x2.sizes, ", expected ", a.x1.dtype, " ", a.x1.sizes);
  Dims kept;
  for (int d = 0; d < a.x1.dim(); ++d) {
    if (d != a.dim) {
      kept.push_back(a.x1.size(d));
    }
  }
  for (const View* view : statistics) {
    check(view->dtype == compute_dtype(a.x1.dtype) && view->sizes == kept && view->contiguous, kOp,
          ": got a result or statistic ", view->dtype, " ", view->sizes,
          view->contiguous ? "" : " (not contiguous)", ", expected a contiguous ",
          compute_dtype(a.x1.dtype), " ", kept);
  }
}

}  // namespace

void check_arguments(const CosineSimilarityForward& a) {
  check_common(a, {&a.y, &a.inverse1, &a.inverse2});
}

void check_arguments(const CosineSimilarityBackward& a) {
  check_common(a, {&a.y, &a.inverse1, &a.inverse2, &a.dy});
  for (const View* dx : {&a.dx1, &a.dx2}) {
    check(!*dx || (dx->dtype == a.x1.dtype && dx->sizes == a.x1.sizes), kOp, ": got a gradient ",
          dx->dtype, " ", dx->sizes, ", expected ", a.x1.dtype, " ", a.x1.sizes);
  }
}

}  // namespace binade::kernels
