// Optimizer steps on the CPU. Threads get whole blocks of elements, so an element's place in a
// vector, and with it every bit of the result, depends on its index only. gradient_stats adds up
// chunks of fixed size in order.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer.h>
#include <binade/kernels/optimizer_isa.h>

#include <algorithm>
#include <cmath>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 16384;

// Element `index` of a view, null where the view is absent.
std::byte* element(const View& view, int64_t index) {
  return view ? view.data + index * static_cast<int64_t>(size_of(view.dtype)) : nullptr;
}

void check_flat(const char* op, const char* name, const View& view, const View& like, DType dtype) {
  check(view.dtype == dtype && view.sizes == like.sizes && view.contiguous && view.dim() == 1, op,
        ": got ", name, " ", view.dtype, " ", view.sizes,
        view.contiguous ? "" : " (not contiguous)", ", expected a contiguous ", dtype,
        " vector like param ", like.sizes);
}

void check_step(const char* op, const View& param, const View& master, const View& grad) {
  check(is_floating(param.dtype), op, ": got param ", param.dtype, ", expected a floating dtype");
  check_flat(op, "param", param, param, param.dtype);
  check_flat(op, "grad", grad, param, param.dtype);
  if (master) {
    check(is_half(param.dtype), op, ": got a master for ", param.dtype,
          " param, expected one for f16 and bf16 only");
    check_flat(op, "master", master, param, compute_dtype(param.dtype));
  }
}

// Calls body(begin, end) on ranges of elements that start at multiples of a block.
template <class F>
void for_blocks(int64_t count, F&& body) {
  constexpr int64_t kBlock = 4096;
  parallel_for(
      (count + kBlock - 1) / kBlock, kElementsPerTask / kBlock,
      [&](int64_t begin, int64_t end) { body(begin * kBlock, std::min(end * kBlock, count)); });
}

StepRange step_range(const View& param, const View& master, const View& grad, int64_t begin,
                     int64_t end) {
  return {.dtype = param.dtype,
          .param = element(param, begin),
          .master = element(master, begin),
          .grad = element(grad, begin),
          .count = end - begin};
}

}  // namespace

void cpu::gradient_stats(const GradientStats& a) {
  check(is_floating(a.grad.dtype), "gradient_stats: got ", a.grad.dtype,
        ", expected a floating dtype");
  check_flat("gradient_stats", "grad", a.grad, a.grad, a.grad.dtype);
  check(a.result.dtype == DType::f64 && a.result.sizes == Dims{2} && a.result.contiguous,
        "gradient_stats: got result ", a.result.dtype, " ", a.result.sizes,
        ", expected a contiguous f64 [2]");
  const int64_t count = a.grad.numel;
  const int64_t chunks = (count + kElementsPerTask - 1) / kElementsPerTask;
  const Workspace partials(static_cast<size_t>(chunks) * 2 * sizeof(double));
  double* partial = partials.as<double>();
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kElementsPerTask;
      gradient_stats_range_best(
          GradientStatsRange{.dtype = a.grad.dtype,
                             .grad = element(a.grad, first),
                             .count = std::min(kElementsPerTask, count - first),
                             .result = partial + 2 * chunk});
    }
  });
  double* result = a.result.as<double>();
  result[0] = result[1] = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    result[0] += partial[2 * chunk];
    result[1] += partial[2 * chunk + 1];
  }
}

void cpu::sgd_step(const SgdStep& a) {
  check_step("sgd_step", a.param, a.master, a.grad);
  if (a.momentum_buffer) {
    check_flat("sgd_step", "momentum_buffer", a.momentum_buffer, a.param,
               compute_dtype(a.param.dtype));
  }
  check(a.momentum == 0 || a.momentum_buffer || a.param.numel == 0, "sgd_step: got momentum ",
        a.momentum, " without a momentum_buffer, expected both or neither");
  check(!a.nesterov || (a.momentum > 0 && a.dampening == 0),
        "sgd_step: got nesterov with momentum ", a.momentum, " and dampening ", a.dampening,
        ", expected momentum above 0 and dampening 0");
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    sgd_range_best(
        SgdRange{.range = step_range(a.param, a.master, a.grad, begin, end),
                 .momentum_buffer = a.momentum == 0 ? nullptr : element(a.momentum_buffer, begin),
                 .lr = a.lr,
                 .momentum = a.momentum,
                 .grad_scale = a.grad_multiplier,
                 .weight_decay = a.weight_decay,
                 .dampening = a.dampening,
                 .nesterov = a.nesterov,
                 .first_step = a.first_step});
  });
}

void cpu::adam_step(const AdamStep& a) {
  check_step("adam_step", a.param, a.master, a.grad);
  const DType stat = compute_dtype(a.param.dtype);
  check_flat("adam_step", "exp_avg", a.exp_avg, a.param, stat);
  check_flat("adam_step", "exp_avg_sq", a.exp_avg_sq, a.param, stat);
  if (a.max_exp_avg_sq) {
    check_flat("adam_step", "max_exp_avg_sq", a.max_exp_avg_sq, a.param, stat);
  }
  check(a.step >= 1, "adam_step: got step ", a.step, ", expected 1 or more");
  check(a.beta1 >= 0 && a.beta1 < 1 && a.beta2 >= 0 && a.beta2 < 1, "adam_step: got betas ",
        a.beta1, " and ", a.beta2, ", expected 0 to below 1");
  const double t = static_cast<double>(a.step);
  const double correction1 = 1 - std::pow(a.beta1, t), correction2 = 1 - std::pow(a.beta2, t);
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    adam_range_best(AdamRange{.range = step_range(a.param, a.master, a.grad, begin, end),
                              .exp_avg = element(a.exp_avg, begin),
                              .exp_avg_sq = element(a.exp_avg_sq, begin),
                              .max_exp_avg_sq = element(a.max_exp_avg_sq, begin),
                              .beta1 = a.beta1,
                              .beta2 = a.beta2,
                              .eps = a.eps,
                              .step_size = a.lr / correction1,
                              .second_scale = 1 / std::sqrt(correction2),
                              .grad_scale = a.grad_multiplier,
                              .coupled_decay = a.decoupled ? 0 : a.weight_decay,
                              .shrink = a.decoupled ? 1 - a.lr * a.weight_decay : 1});
  });
}

}  // namespace binade::kernels
