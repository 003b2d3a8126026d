// Pointwise losses on the CPU. The loop nest is split into units of about kUnit elements, by shape
// alone. Each unit has a partial sum, and these are added in order.
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/loss/pointwise_loss.h>
#include <binade/kernels/loss/pointwise_loss_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kUnit = 4096;

LossTask task_of(const StridedLoop& loop) {
  LossTask task{};
  task.dims = loop.dims();
  for (int d = 0; d < loop.dims(); ++d) {
    task.size[d] = loop.size(d);
    for (int k = 0; k < LossTask::kOperands; ++k) {
      task.stride[k][d] = loop.stride(k, d);
    }
  }
  for (int k = 0; k < LossTask::kOperands; ++k) {
    task.data[k] = loop.data(k);
  }
  return task;
}

// How the rows of a loop become units: long rows are split, short ones joined.
struct Units {
  int64_t parts, rows_each, rows, count;

  explicit Units(const StridedLoop& loop)
      : parts((loop.size(0) + kUnit - 1) / kUnit),
        rows_each(parts > 1 ? 1 : std::max<int64_t>(1, kUnit / loop.size(0))),
        rows(loop.numel() / loop.size(0)),
        count(parts > 1 ? rows * parts : (rows + rows_each - 1) / rows_each) {}
  void place(int64_t unit, LossTask& task) const {
    task.first_row = unit / parts * rows_each;
    task.rows = std::min(rows_each, rows - task.first_row);
    task.from = unit % parts * kUnit;
    task.n = std::min(kUnit, task.size[0] - task.from);
  }
  // Calls f(unit, task) for every unit, on several threads if there is enough work.
  template <class F>
  void run(const LossTask& whole, const F& f) const {
    parallel_for(count, kSerialElements / kUnit, [&](int64_t begin, int64_t end) {
      LossTask task = whole;
      for (int64_t unit = begin; unit < end; ++unit) {
        place(unit, task);
        f(unit, task);
      }
    });
  }
};

// Throws an error that names the first probability outside [0, 1].
void check_probabilities(const View& x) {
  dispatch_floating("bce", x.dtype, [&]<class T>(Type<T>) {
    for (int64_t i = 0; i < x.numel; ++i) {
      int64_t rest = i, at = 0;
      for (int d = x.dim() - 1; d >= 0; --d) {
        at += rest % x.size(d) * x.strides[d];
        rest /= x.size(d);
      }
      const auto value = static_cast<double>(x.as<T>()[at]);
      if (value < 0 || value > 1) {
        throw ValueError(text("bce: got input ", value, " at element ", i,
                              ", expected 0 to 1, a probability; bce_with_logits takes any number"),
                         "bce", value);
      }
    }
  });
}

}  // namespace

void cpu::pointwise_loss_forward(const PointwiseLossForward& a) {
  check_arguments(a);
  double sum = 0;
  if (a.x.numel > 0) {
    const View& out = a.each ? a.y : a.x;
    const StridedLoop loop(to_string(a.op), {&out, &a.x, &a.t, &a.weight, &a.pos_weight, &kNoView});
    LossTask whole = task_of(loop);
    whole.op = a.op;
    whole.dtype = a.x.dtype;
    whole.alpha = a.alpha;
    const Units units(loop);
    const Workspace partials(static_cast<size_t>(units.count) * sizeof(double));
    double* partial = partials.as<double>();
    units.run(whole, [&](int64_t unit, const LossTask& task) {
      pointwise_loss_forward_rows_best(task, a.each, partial + unit);
    });
    for (int64_t unit = 0; unit < units.count; ++unit) {
      sum += partial[unit];
    }
  }
  if (a.op == PointwiseLoss::bce && sum != sum) {
    check_probabilities(a.x);
  }
  if (!a.each) {
    sum /= a.divisor;
    a.y.dtype == DType::f64 ? *a.y.as<double>() = sum : *a.y.as<float>() = static_cast<float>(sum);
  }
}

void cpu::pointwise_loss_backward(const PointwiseLossBackward& a) {
  check_arguments(a);
  for (const bool of_target : {false, true}) {
    const View& out = of_target ? a.dt : a.dx;
    if (!out || out.numel == 0) {
      continue;
    }
    const StridedLoop loop(to_string(a.op), {&out, &a.x, &a.t, &a.weight, &a.pos_weight, &a.dy});
    LossTask whole = task_of(loop);
    whole.op = a.op;
    whole.dtype = a.x.dtype;
    whole.alpha = a.alpha;
    whole.factor = 1 / a.divisor;
    Units(loop).run(whole, [&](int64_t, const LossTask& task) {
      pointwise_loss_backward_rows_best(task, of_target);
    });
  }
}

}  // namespace binade::kernels
