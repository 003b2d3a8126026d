// Softmax on the CPU: rows are independent and split over threads; if the elements along the
// dimension are not adjacent they are packed first.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/softmax/softmax.h>
#include <binade/kernels/softmax/softmax_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 8192;

int64_t row_grain(int64_t cols) { return std::max<int64_t>(1, kElementsPerTask / cols); }

int64_t bytes_of(const View& view) {
  return view.numel * static_cast<int64_t>(size_of(view.dtype));
}

View at_least_1d(View view) {
  if (view && view.dim() == 0) {
    view.sizes = view.strides = Dims{1};
  }
  return view;
}

}  // namespace

void cpu::softmax_forward(const SoftmaxForward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const View x_view = at_least_1d(a.x), y_view = at_least_1d(a.y);
  const PackedRows x(x_view, a.dim, Access::read), y(y_view, a.dim, Access::write);
  const int64_t cols = x_view.size(a.dim);
  const bool nontemporal = a.y.data != a.x.data && bytes_of(a.y) >= kNontemporalBytes;
  parallel_for(a.x.numel / cols, row_grain(cols), [&](int64_t begin, int64_t end) {
    const Workspace scratch(static_cast<size_t>(cols) * size_of(compute_dtype(a.x.dtype)));
    softmax_rows_best(SoftmaxRows{.dtype = a.x.dtype,
                                  .x = x.row(begin),
                                  .y = y.row(begin),
                                  .x_stride = x.stride(),
                                  .y_stride = y.stride(),
                                  .rows = end - begin,
                                  .cols = cols,
                                  .log = a.log,
                                  .scratch = scratch.as<void>(),
                                  .nontemporal = nontemporal});
  });
  y.unpack();
}

void cpu::softmax_backward(const SoftmaxBackward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const View y_view = at_least_1d(a.y), dy_view = at_least_1d(a.dy), dx_view = at_least_1d(a.dx);
  const PackedRows y(y_view, a.dim, Access::read), dy(dy_view, a.dim, Access::read);
  const PackedRows dx(dx_view, a.dim, Access::write);
  const int64_t cols = y_view.size(a.dim);
  const bool nontemporal =
      a.dx.data != a.y.data && a.dx.data != a.dy.data && bytes_of(a.dx) >= kNontemporalBytes;
  parallel_for(a.y.numel / cols, row_grain(cols), [&](int64_t begin, int64_t end) {
    softmax_rows_backward_best(SoftmaxRowsBackward{.dtype = a.y.dtype,
                                                   .y = y.row(begin),
                                                   .dy = dy.row(begin),
                                                   .dx = dx.row(begin),
                                                   .y_stride = y.stride(),
                                                   .dy_stride = dy.stride(),
                                                   .dx_stride = dx.stride(),
                                                   .rows = end - begin,
                                                   .cols = cols,
                                                   .log = a.log,
                                                   .nontemporal = nontemporal});
  });
  dx.unpack();
}

}  // namespace binade::kernels
