// Cross entropy on the CPU: targets are checked first, then rows are split over threads.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/loss/cross_entropy.h>
#include <binade/kernels/loss/cross_entropy_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr const char* kOp = "cross_entropy";
constexpr int64_t kElementsPerTask = 8192;

void check_targets(const View& logits, const View& target, int64_t ignore_index) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t value = target.as<int64_t>()[row * target.strides[0]];
    check((value >= 0 && value < classes) || value == ignore_index, kOp, ": got target ", value,
          " in row ", row, ", expected 0 to ", classes - 1, " or ignore_index ", ignore_index);
  }
}

double weight_sum(const View& weight, int64_t classes) {
  if (!weight) {
    return static_cast<double>(classes);
  }
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) {
    sum += weight.dtype == DType::f64 ? weight.as<double>()[i]
                                      : static_cast<double>(weight.as<float>()[i]);
  }
  return sum;
}

int64_t row_grain(int64_t classes) { return std::max<int64_t>(1, kElementsPerTask / classes); }

}  // namespace

void cpu::cross_entropy_forward(const CrossEntropyForward& a) {
  check_arguments(a);
  check_targets(a.logits, a.target, a.ignore_index);
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  if (rows == 0) {
    return;
  }
  const PackedRows logits(a.logits, 1, Access::read);
  const double sum = weight_sum(a.weight, classes);
  parallel_for(rows, row_grain(classes), [&](int64_t begin, int64_t end) {
    cross_entropy_rows_best(
        CrossEntropyRows{.dtype = a.logits.dtype,
                         .logits = logits.row(begin),
                         .stride = logits.stride(),
                         .rows = end - begin,
                         .classes = classes,
                         .target = a.target.as<int64_t>() + begin * a.target.strides[0],
                         .target_stride = a.target.strides[0],
                         .weight = a.weight.data,
                         .weight_sum = sum,
                         .ignore_index = a.ignore_index,
                         .label_smoothing = a.label_smoothing,
                         .row_loss = element(a.row_loss, begin),
                         .row_weight = element(a.row_weight, begin),
                         .lse = element(a.lse, begin)});
  });
}

void cpu::cross_entropy_backward(const CrossEntropyBackward& a) {
  check_arguments(a);
  check_targets(a.logits, a.target, a.ignore_index);
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  const DType compute = compute_dtype(a.logits.dtype);
  if (rows == 0) {
    return;
  }
  const PackedRows logits(a.logits, 1, Access::read), dlogits(a.dlogits, 1, Access::write);
  const double sum = weight_sum(a.weight, classes);
  const bool nontemporal =
      a.dlogits.numel * static_cast<int64_t>(size_of(a.dlogits.dtype)) >= kNontemporalBytes;
  parallel_for(rows, row_grain(classes), [&](int64_t begin, int64_t end) {
    const Workspace scratch(static_cast<size_t>(classes) * size_of(compute));
    cross_entropy_rows_backward_best(
        CrossEntropyRowsBackward{.dtype = a.logits.dtype,
                                 .logits = logits.row(begin),
                                 .stride = logits.stride(),
                                 .rows = end - begin,
                                 .classes = classes,
                                 .target = a.target.as<int64_t>() + begin * a.target.strides[0],
                                 .target_stride = a.target.strides[0],
                                 .weight = a.weight.data,
                                 .weight_sum = sum,
                                 .ignore_index = a.ignore_index,
                                 .label_smoothing = a.label_smoothing,
                                 .lse = element(a.lse, begin),
                                 .row_scale = element(a.row_scale, begin),
                                 .dlogits = dlogits.row(begin),
                                 .dlogits_stride = dlogits.stride(),
                                 .scratch = scratch.as<void>(),
                                 .nontemporal = nontemporal});
  });
  dlogits.unpack();
}

void cpu::cross_entropy_forward_backward(const CrossEntropyForwardBackward& a) {
  check_arguments(a);
  cpu::cross_entropy_forward({.logits = a.logits,
                              .target = a.target,
                              .weight = a.weight,
                              .row_loss = a.row_loss,
                              .row_weight = a.row_weight,
                              .lse = a.lse,
                              .ignore_index = a.ignore_index,
                              .label_smoothing = a.label_smoothing});
  cpu::cross_entropy_backward({.logits = a.logits,
                               .target = a.target,
                               .weight = a.weight,
                               .lse = a.lse,
                               .row_scale = a.row_scale,
                               .dlogits = a.dlogits,
                               .ignore_index = a.ignore_index,
                               .label_smoothing = a.label_smoothing});
}

}  // namespace binade::kernels
