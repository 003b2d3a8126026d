// Cosine similarity on the CPU: rows along the dimension, split over threads.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/reduce/cosine_similarity.h>
#include <binade/kernels/reduce/cosine_similarity_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 8192;

// Rows [begin, end) of the operands that both directions have.
template <class Arguments>
CosineRows rows_of(const Arguments& a, const PackedRows& x1, const PackedRows& x2, int64_t begin,
                   int64_t end) {
  CosineRows rows{};
  rows.dtype = a.x1.dtype;
  rows.x[0] = x1.row(begin);
  rows.x[1] = x2.row(begin);
  rows.stride[0] = x1.stride();
  rows.stride[1] = x2.stride();
  rows.rows = end - begin;
  rows.cols = a.x1.size(a.dim);
  rows.y = element(a.y, begin);
  rows.inverse[0] = element(a.inverse1, begin);
  rows.inverse[1] = element(a.inverse2, begin);
  return rows;
}

template <class F>
void for_rows(const View& y, int64_t cols, const F& f) {
  parallel_for(y.numel, std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(cols, 1)), f);
}

}  // namespace

void cpu::cosine_similarity_forward(const CosineSimilarityForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const PackedRows x1(a.x1, a.dim, Access::read), x2(a.x2, a.dim, Access::read);
  for_rows(a.y, a.x1.size(a.dim), [&](int64_t begin, int64_t end) {
    CosineRows rows = rows_of(a, x1, x2, begin, end);
    rows.eps = a.eps;
    cosine_rows_forward_best(rows);
  });
}

void cpu::cosine_similarity_backward(const CosineSimilarityBackward& a) {
  check_arguments(a);
  if (a.x1.numel == 0) {
    return;
  }
  const PackedRows x1(a.x1, a.dim, Access::read), x2(a.x2, a.dim, Access::read);
  const PackedRows dx1(a.dx1, a.dim, Access::write), dx2(a.dx2, a.dim, Access::write);
  for_rows(a.y, a.x1.size(a.dim), [&](int64_t begin, int64_t end) {
    CosineRows rows = rows_of(a, x1, x2, begin, end);
    rows.dy = element(a.dy, begin);
    rows.dx[0] = a.dx1 ? dx1.row(begin) : nullptr;
    rows.dx[1] = a.dx2 ? dx2.row(begin) : nullptr;
    rows.dx_stride[0] = dx1.stride();
    rows.dx_stride[1] = dx2.stride();
    cosine_rows_backward_best(rows);
  });
  if (a.dx1) {
    dx1.unpack();
  }
  if (a.dx2) {
    dx2.unpack();
  }
}

}  // namespace binade::kernels
