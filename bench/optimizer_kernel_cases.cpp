// Kernels of a training step as cases, on flat ranges of rows x cols elements.
#include <bench/kernel_cases.h>
#include <binade/kernels/copy/combine.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/exponents/exponents.h>
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/kernels/optimizer/optimizer_moment.h>
#include <binade/kernels/optimizer/optimizer_trust.h>

#include <algorithm>

namespace binade::bench {
namespace {

// The operands of an optimizer step with two moments.
struct StepOperands {
  const View &param, &grad, &first, &second, &master;
  double bytes;  // for a step that reads and writes both moments

  StepOperands(Operands& o, int64_t count, DType dtype)
      : param(o.random(dtype, {count})),
        grad(o.random(dtype, {count})),
        first(o.zeros(compute_dtype(dtype), {count})),
        second(o.zeros(compute_dtype(dtype), {count})),
        master(is_half(dtype) ? o.random(DType::f32, {count}) : kNoView),
        bytes(bytes_of(grad, first, first, second, second, param) +
              (master ? 2 * bytes_of(master) : bytes_of(param))) {}
};

Prepared gradient_stats(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &g = o->random(dtype, {rows * cols}), &result = o->empty(DType::f64, {2});
  return {o, [&] { kernels::gradient_stats({.grad = g, .result = result}); }, bytes_of(g, result),
          0};
}

// One step of a ring all-reduce.
Prepared combine(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &received = o->random(dtype, {rows * cols}), &x = o->random(dtype, {rows * cols}),
             &y = o->empty(dtype, {rows * cols});
  return {o,
          [&] {
            kernels::combine({.op = kernels::CombineOp::sum, .received = received, .x = x, .y = y});
          },
          bytes_of(received, x, y), 0};
}

Prepared count_exponents(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows * cols}),
             &result = o->zeros(DType::i64, {kernels::kExponentCounters});
  return {o, [&] { kernels::count_exponents({.x = x, .result = result}); }, bytes_of(x), 0,
          2 * bytes_of(result)};
}

Prepared count_lost_updates(int64_t rows, int64_t cols, DType, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &before = o->random(DType::f32, {rows * cols}),
             &after = o->random(DType::f32, {rows * cols}), &result = o->zeros(DType::i64, {3});
  return {
      o, [&] { kernels::count_lost_updates({.before = before, .after = after, .result = result}); },
      bytes_of(before, after, result, result), 0};
}

Prepared adam_step(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const StepOperands s(*o, rows * cols, dtype);
  return {o,
          [s] {
            kernels::adam_step({.param = s.param,
                                .master = s.master,
                                .grad = s.grad,
                                .exp_avg = s.first,
                                .exp_avg_sq = s.second,
                                .lr = 1e-3,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .weight_decay = 0.01,
                                .decoupled = true,
                                .step = 1,
                                .grad_multiplier = 1});
          },
          s.bytes, 0};
}

Prepared rmsprop_step(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const StepOperands s(*o, rows * cols, dtype);
  return {o,
          [s] {
            kernels::rmsprop_step({.param = s.param,
                                   .master = s.master,
                                   .grad = s.grad,
                                   .square_avg = s.first,
                                   .lr = 1e-3,
                                   .alpha = 0.99,
                                   .eps = 1e-8,
                                   .weight_decay = 0,
                                   .momentum = 0.9,
                                   .grad_multiplier = 1,
                                   .momentum_buffer = s.second});
          },
          s.bytes, 0};
}

Prepared adagrad_step(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const StepOperands s(*o, rows * cols, dtype);
  return {o,
          [s] {
            kernels::adagrad_step({.param = s.param,
                                   .master = s.master,
                                   .grad = s.grad,
                                   .sum = s.first,
                                   .lr = 1e-3,
                                   .lr_decay = 0,
                                   .eps = 1e-10,
                                   .weight_decay = 0,
                                   .step = 1,
                                   .grad_multiplier = 1});
          },
          s.bytes - 2 * bytes_of(s.second), 0};
}

Prepared moment_step(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const StepOperands s(*o, rows * cols, dtype);
  return {o,
          [s] {
            kernels::moment_step({.param = s.param,
                                  .master = s.master,
                                  .grad = s.grad,
                                  .exp_avg = s.first,
                                  .exp_avg_sq = s.second,
                                  .rule = kernels::MomentRule::nadam,
                                  .lr = 1e-3,
                                  .beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .eps = 1e-8,
                                  .weight_decay = 0,
                                  .decoupled = false,
                                  .momentum_decay = 4e-3,
                                  .step = 1,
                                  .grad_multiplier = 1});
          },
          s.bytes, 0};
}

// A trust table with one parameter that has all elements.
kernels::TrustTable one_parameter(Operands& o, int64_t count) {
  const int64_t chunks = (count + kernels::kTrustChunk - 1) / kernels::kTrustChunk;
  const View& rows = o.zeros(DType::i64, {chunks, 3});
  const auto set = [](const View& table, int64_t at, int64_t value) {
    View cell = table;
    cell.data += at * static_cast<int64_t>(sizeof(int64_t));
    cell.numel = 1;
    cell.sizes = {1};
    cell.strides = {1};
    kernels::fill({.y = cell, .value = static_cast<double>(value)});
  };
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t begin = i * kernels::kTrustChunk;
    set(rows, 3 * i, begin);
    set(rows, 3 * i + 1, std::min(kernels::kTrustChunk, count - begin));
  }
  const View& items = o.zeros(DType::i64, {1, 2});
  set(items, 1, chunks);
  return {.chunks = rows,
          .items = items,
          .origin = 0,
          .first_chunk = 0,
          .first_item = 0,
          .ratios = o.zeros(DType::f64, {1})};
}

Prepared lamb_step(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const StepOperands s(*o, rows * cols, dtype);
  const kernels::TrustTable table = one_parameter(*o, rows * cols);
  return {o,
          [s, table] {
            kernels::lamb_step({.param = s.param,
                                .master = s.master,
                                .grad = s.grad,
                                .exp_avg = s.first,
                                .exp_avg_sq = s.second,
                                .table = table,
                                .lr = 1e-3,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-6,
                                .weight_decay = 0.01,
                                .step = 1,
                                .grad_multiplier = 1});
          },
          s.bytes + bytes_of(table.chunks, table.items, table.ratios), 0};
}

Prepared lars_step(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const StepOperands s(*o, rows * cols, dtype);
  const kernels::TrustTable table = one_parameter(*o, rows * cols);
  return {o,
          [s, table] {
            kernels::lars_step({.param = s.param,
                                .master = s.master,
                                .grad = s.grad,
                                .momentum_buffer = s.first,
                                .table = table,
                                .lr = 0.1,
                                .momentum = 0.9,
                                .weight_decay = 1e-4,
                                .trust_coefficient = 1e-3,
                                .eps = 1e-9,
                                .grad_multiplier = 1});
          },
          s.bytes - 2 * bytes_of(s.second) + bytes_of(table.chunks, table.items, table.ratios), 0};
}

}  // namespace

std::vector<KernelCase> optimizer_kernel_cases() {
  constexpr const char* kElements = "rows x cols elements";
  return {{"gradient_stats", kElements, gradient_stats},
          {"combine", kElements, combine},
          {"count_exponents", kElements, count_exponents},
          {"count_lost_updates", kElements, count_lost_updates},
          {"adam_step", kElements, adam_step},
          {"rmsprop_step", kElements, rmsprop_step},
          {"adagrad_step", kElements, adagrad_step},
          {"moment_step", kElements, moment_step},
          {"lamb_step", kElements, lamb_step},
          {"lars_step", kElements, lars_step}};
}

}  // namespace binade::bench
