// nll_loss on the CPU: a gather; the gradient is a fill and a scatter.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/nll_loss.h>

namespace binade::kernels {
namespace {

// Calls f(row, class, element of the first tensor) for every target that is not ignored, and
// ignored(row) for the others.
template <class F, class G>
void for_targets(const View& of, const View& target, int64_t ignore_index, const F& f,
                 const G& ignored) {
  const int64_t inner = of.size(2), classes = of.size(1);
  parallel_for(target.numel, kSerialElements, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / inner, i = row % inner;
      const int64_t t = target.as<int64_t>()[n * target.strides[0] + i * target.strides[1]];
      if (t == ignore_index) {
        ignored(row);
        continue;
      }
      check(t >= 0 && t < classes, "nll_loss: got target ", t, " in row ", row, ", expected 0 to ",
            classes - 1, " or ignore_index ", ignore_index);
      f(row, t, n * of.strides[0] + t * of.strides[1] + i * of.strides[2]);
    }
  });
}

}  // namespace

void cpu::nll_loss_forward(const NllLossForward& a) {
  check_arguments(a);
  dispatch_floating("nll_loss", a.log_probs.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    C *loss = a.row_loss.as<C>(), *row_weight = a.row_weight.as<C>();
    for_targets(
        a.log_probs, a.target, a.ignore_index,
        [&](int64_t row, int64_t t, int64_t at) {
          const C w = a.weight ? a.weight.as<C>()[t] : C(1);
          loss[row] = -w * static_cast<C>(a.log_probs.as<T>()[at]);
          row_weight[row] = w;
        },
        [&](int64_t row) { loss[row] = row_weight[row] = C(0); });
  });
}

void cpu::nll_loss_backward(const NllLossBackward& a) {
  check_arguments(a);
  cpu::fill({.y = a.dlog_probs, .value = 0});
  dispatch_floating("nll_loss", a.dlog_probs.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    for_targets(
        a.dlog_probs, a.target, a.ignore_index,
        [&](int64_t row, int64_t t, int64_t at) {
          const C w = a.weight ? a.weight.as<C>()[t] : C(1);
          a.dlog_probs.as<T>()[at] = static_cast<T>(-w * a.row_scale.as<C>()[row]);
        },
        [](int64_t) {});
  });
}

}  // namespace binade::kernels
