#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>
#include <binade/kernels/optimizer/optimizer_trust_internal.h>

namespace binade::kernels {
namespace {

void check_rows(const char* op, const char* name, const View& view, int64_t columns) {
  check(view.dtype == DType::i64 && view.dim() == 2 && view.contiguous && view.sizes[1] == columns,
        op, ": got ", name, " ", view.dtype, " ", view.sizes, ", expected a contiguous i64 [rows, ",
        columns, "]");
}

void check_table(const char* op, const TrustTable& table) {
  check_rows(op, "chunks", table.chunks, 3);
  check_rows(op, "items", table.items, 2);
  check_step_scalars(op, "ratios", table.ratios, table.items.sizes[0]);
}

}  // namespace

void check_arguments(const LAMBStep& a) {
  check_step("lamb_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("lamb_step", a.param, a.master, a.low);
  const DType compute = compute_dtype(a.param.dtype);
  check_flat("lamb_step", "exp_avg", a.exp_avg, a.param, compute);
  check_flat("lamb_step", "exp_avg_sq", a.exp_avg_sq, a.param, compute);
  check_table("lamb_step", a.table);
  check(a.step_scalars || a.step >= 1, "lamb_step: got step ", a.step, ", expected 1 or more");
  check(a.beta1 >= 0 && a.beta1 < 1 && a.beta2 >= 0 && a.beta2 < 1, "lamb_step: got betas ",
        a.beta1, " and ", a.beta2, ", expected 0 to below 1");
}

void check_arguments(const LARSStep& a) {
  check_step("lars_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("lars_step", a.param, a.master, a.low);
  check_flat("lars_step", "momentum_buffer", a.momentum_buffer, a.param,
             compute_dtype(a.param.dtype));
  check_table("lars_step", a.table);
  check(a.trust_coefficient > 0, "lars_step: got trust_coefficient ", a.trust_coefficient,
        ", expected a positive number");
}

RangeScalars step_scalars_of(const LAMBStep& a) {
  return range_scalars({.multiplier = a.grad_multiplier,
                        .lr = a.lr,
                        .momentum = a.beta1,
                        .update = static_cast<double>(a.step),
                        .beta2 = a.beta2});
}

RangeScalars step_scalars_of(const LARSStep& a) {
  return {.apply = 1,
          .multiplier = a.grad_multiplier,
          .lr = a.lr,
          .momentum = a.momentum,
          .update = 1,
          .first_scale = 1,
          .second_scale = 1};
}

}  // namespace binade::kernels
