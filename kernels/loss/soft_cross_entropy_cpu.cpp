// Cross entropy with probabilities on the CPU: rows are split over threads.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/loss/soft_cross_entropy.h>
#include <binade/kernels/loss/soft_cross_entropy_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 8192;

void run(const View& logits_view, const View& target_view, const View& weight, double smoothing,
         const View& row_loss, const View& row_scale, const View& dlogits_view) {
  const int64_t rows = logits_view.size(0), classes = logits_view.size(1);
  if (rows == 0 || classes == 0) {
    if (row_loss) {
      std::fill_n(row_loss.data, static_cast<size_t>(rows) * size_of(row_loss.dtype), std::byte{});
    }
    return;
  }
  const PackedRows logits(logits_view, 1, Access::read), target(target_view, 1, Access::read);
  const PackedRows dlogits(dlogits_view, 1, Access::write);
  const size_t scratch_bytes =
      row_loss ? 0 : static_cast<size_t>(classes) * size_of(compute_dtype(logits_view.dtype));
  parallel_for(
      rows, std::max<int64_t>(1, kElementsPerTask / classes), [&](int64_t begin, int64_t end) {
        const Workspace scratch(scratch_bytes);
        soft_cross_entropy_rows_best(
            SoftCrossEntropyRows{.dtype = logits_view.dtype,
                                 .logits = logits.row(begin),
                                 .stride = logits.stride(),
                                 .target = target.row(begin),
                                 .target_stride = target.stride(),
                                 .rows = end - begin,
                                 .classes = classes,
                                 .weight = weight.data,
                                 .label_smoothing = smoothing,
                                 .row_loss = row_loss ? element(row_loss, begin) : nullptr,
                                 .row_scale = row_scale ? element(row_scale, begin) : nullptr,
                                 .dlogits = dlogits_view ? dlogits.row(begin) : nullptr,
                                 .dlogits_stride = dlogits.stride(),
                                 .scratch = row_loss ? nullptr : scratch.as<void>()});
      });
  if (dlogits_view) {
    dlogits.finish();
  }
}

}  // namespace

void cpu::soft_cross_entropy_forward(const SoftCrossEntropyForward& a) {
  check_arguments(a);
  run(a.logits, a.target, a.weight, a.label_smoothing, a.row_loss, kNoView, kNoView);
}

void cpu::soft_cross_entropy_backward(const SoftCrossEntropyBackward& a) {
  check_arguments(a);
  run(a.logits, a.target, a.weight, a.label_smoothing, kNoView, a.row_scale, a.dlogits);
}

}  // namespace binade::kernels
