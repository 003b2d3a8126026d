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

// Results that are not wanted are kNoView.
struct Operands {
  const View& logits;
  const View& target;
  const View& weight;
  double label_smoothing;
  const View& row_loss = kNoView;
  const View& row_scale = kNoView;
  const View& dlogits = kNoView;
};

void run(const Operands& a) {
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  if (rows == 0 || classes == 0) {
    if (a.row_loss) {
      std::fill_n(a.row_loss.data, static_cast<size_t>(rows) * size_of(a.row_loss.dtype),
                  std::byte{});
    }
    return;
  }
  const PackedRows logits(a.logits, 1, Access::read), target(a.target, 1, Access::read);
  const PackedRows dlogits(a.dlogits, 1, Access::write);
  const size_t scratch_bytes =
      a.row_loss ? 0 : static_cast<size_t>(classes) * size_of(compute_dtype(a.logits.dtype));
  parallel_for(
      rows, std::max<int64_t>(1, kElementsPerTask / classes), [&](int64_t begin, int64_t end) {
        const Workspace scratch(scratch_bytes);
        soft_cross_entropy_rows_best(
            SoftCrossEntropyRows{.dtype = a.logits.dtype,
                                 .logits = logits.row(begin),
                                 .stride = logits.stride(),
                                 .target = target.row(begin),
                                 .target_stride = target.stride(),
                                 .rows = end - begin,
                                 .classes = classes,
                                 .weight = a.weight.data,
                                 .label_smoothing = a.label_smoothing,
                                 .row_loss = a.row_loss ? element(a.row_loss, begin) : nullptr,
                                 .row_scale = a.row_scale ? element(a.row_scale, begin) : nullptr,
                                 .dlogits = a.dlogits ? dlogits.row(begin) : nullptr,
                                 .dlogits_stride = dlogits.stride(),
                                 .scratch = a.row_loss ? nullptr : scratch.as<void>()});
      });
  if (a.dlogits) {
    dlogits.unpack();
  }
}

}  // namespace

void cpu::soft_cross_entropy_forward(const SoftCrossEntropyForward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .label_smoothing = a.label_smoothing,
       .row_loss = a.row_loss});
}

void cpu::soft_cross_entropy_backward(const SoftCrossEntropyBackward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .label_smoothing = a.label_smoothing,
       .row_scale = a.row_scale,
       .dlogits = a.dlogits});
}

}  // namespace binade::kernels
