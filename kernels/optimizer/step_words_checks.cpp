#include <binade/kernels/optimizer/optimizer_internal.h>
#include <binade/kernels/optimizer/step_words.h>

namespace binade::kernels {

void check_arguments(const LossSeed& a) {
  check(a.loss.numel == 1 && is_floating(a.loss.dtype), "loss_seed: got a loss ", a.loss.dtype, " ",
        a.loss.sizes, ", expected one floating element");
  check(a.seed.numel == 1 && a.seed.dtype == a.loss.dtype, "loss_seed: got a seed ", a.seed.dtype,
        " ", a.seed.sizes, ", expected one element of ", a.loss.dtype);
  check_words("loss_seed", "scaler", a.scaler, kWordsOf<ScalerWords>);
  check_words("loss_seed", "tag", a.tag, 1);
}

void check_arguments(const UnscaleGradient& a) {
  check(is_floating(a.x.dtype) && a.y.dtype == compute_dtype(a.x.dtype) && a.x.sizes == a.y.sizes &&
            a.x.strides == a.y.strides && is_dense(a.x.sizes, a.x.strides),
        "unscale_gradient: got x ", a.x.dtype, " ", a.x.sizes, " and y ", a.y.dtype, " ", a.y.sizes,
        ", expected dense memory of one layout, y in the stat dtype of x");
  check_words("unscale_gradient", "tag", a.tag, 1);
}

void check_arguments(const StepStats& a) {
  check_flat_gradient("step_stats", a.grad);
  check_words("step_stats", "words", a.words, kWordsOf<OptimizerWords>);
  if (a.tag) {
    check_words("step_stats", "tag", a.tag, 1);
  }
}

void check_arguments(const StepReplaces& a) {
  check_words("step_replaces", "scaler", a.scaler, kWordsOf<ScalerWords>);
  check_words("step_replaces", "words", a.words, kWordsOf<OptimizerWords>);
}

void check_arguments(const StepDecide& a) {
  if (a.scaler) {
    check_words("step_decide", "scaler", a.scaler, kWordsOf<ScalerWords>);
  }
  check_words("step_decide", "words", a.words, kWordsOf<OptimizerWords>);
  check_words("step_decide", "outcome", a.outcome, 1);
}

void check_arguments(const StepPrepare& a) {
  check_words("step_prepare", "words", a.words, kWordsOf<OptimizerWords>);
  const auto stretches = static_cast<int64_t>(a.stretches.size());
  check(a.result.dtype == DType::f64 && a.result.contiguous &&
            a.result.numel == stretches * kWordsOf<StretchWords>,
        "step_prepare: got result ", a.result.dtype, " ", a.result.sizes,
        ", expected a contiguous f64 [", stretches, ", ", kWordsOf<StretchWords>, "]");
}

void check_arguments(const ScheduleStep& a) {
  check_words("schedule_step", "outcome", a.outcome, 1);
  check_words("schedule_step", "words", a.words, kWordsOf<ScheduleWords>);
  check(a.rates.dtype == DType::f64 && a.rates.dim() == 2, "schedule_step: got rates ",
        a.rates.dtype, " ", a.rates.sizes, ", expected f64 [groups, k]");
  check(a.table.dtype == DType::f64 && a.table.dim() == 3 && a.table.contiguous &&
            a.table.sizes[0] >= 1 && a.table.sizes[1] == a.rates.sizes[0] &&
            a.table.sizes[2] == a.rates.sizes[1],
        "schedule_step: got a table ", a.table.dtype, " ", a.table.sizes,
        ", expected a contiguous f64 [rows, ", a.rates.sizes[0], ", ", a.rates.sizes[1], "]");
}

}  // namespace binade::kernels
