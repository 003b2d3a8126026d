// Cross entropy on the CPU: targets are checked first, then rows are split over threads.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/cross_entropy.h>
#include <binade/kernels/cross_entropy_isa.h>
#include <binade/kernels/packed_rows.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr const char* kOp = "cross_entropy";
constexpr int64_t kElementsPerTask = 8192;

// What the forward and the backward have in common.
struct Common {
  const View& logits;
  const View& target;
  const View& weight;
  int64_t ignore_index;
  double label_smoothing;
};

void check_vector(const char* name, const View& view, int64_t size, DType dtype) {
  check(view.dtype == dtype && view.sizes == Dims{size} && view.contiguous, kOp, ": got ", name,
        " ", view.dtype, " ", view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous ", dtype, " [", size, "]");
}

void check_targets(const Common& c) {
  const int64_t* target = c.target.as<int64_t>();
  const int64_t rows = c.logits.size(0), classes = c.logits.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t value = target[row * c.target.strides[0]];
    check((value >= 0 && value < classes) || value == c.ignore_index, kOp, ": got target ", value,
          " in row ", row, ", expected 0 to ", classes - 1, " or ignore_index ", c.ignore_index);
  }
}

void check_common(const Common& c) {
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
  check_targets(c);
}

double weight_sum(const Common& c) {
  const int64_t classes = c.logits.size(1);
  if (!c.weight) {
    return static_cast<double>(classes);
  }
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) {
    sum += c.weight.dtype == DType::f64 ? c.weight.as<double>()[i]
                                        : static_cast<double>(c.weight.as<float>()[i]);
  }
  return sum;
}

std::byte* element(const View& view, int64_t index) {
  return view.data + index * static_cast<int64_t>(size_of(view.dtype));
}

int64_t row_grain(int64_t classes) { return std::max<int64_t>(1, kElementsPerTask / classes); }

}  // namespace

void cpu::cross_entropy_forward(const CrossEntropyForward& a) {
  const Common common{a.logits, a.target, a.weight, a.ignore_index, a.label_smoothing};
  check_common(common);
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  const DType stat = compute_dtype(a.logits.dtype);
  check_vector("row_loss", a.row_loss, rows, stat);
  check_vector("row_weight", a.row_weight, rows, stat);
  check_vector("lse", a.lse, rows, stat);
  if (rows == 0) {
    return;
  }
  const PackedRows logits(a.logits, 1, Access::read);
  const double sum = weight_sum(common);
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
  const Common common{a.logits, a.target, a.weight, a.ignore_index, a.label_smoothing};
  check_common(common);
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  const DType stat = compute_dtype(a.logits.dtype);
  check_vector("lse", a.lse, rows, stat);
  check_vector("row_scale", a.row_scale, rows, stat);
  check(a.dlogits.sizes == a.logits.sizes && a.dlogits.dtype == a.logits.dtype, kOp,
        ": got dlogits ", a.dlogits.dtype, " ", a.dlogits.sizes, ", expected ", a.logits.dtype, " ",
        a.logits.sizes);
  if (rows == 0) {
    return;
  }
  const PackedRows logits(a.logits, 1, Access::read), dlogits(a.dlogits, 1, Access::write);
  const double sum = weight_sum(common);
  parallel_for(rows, row_grain(classes), [&](int64_t begin, int64_t end) {
    const Workspace scratch(static_cast<size_t>(classes) * size_of(stat));
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
                                 .scratch = scratch.as<void>()});
  });
  dlogits.finish();
}

}  // namespace binade::kernels
