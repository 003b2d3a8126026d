#include <binade/train/trainer_run_internal.h>

#include <cmath>

namespace binade::train {
namespace {

void check_counts(const TrainerOptions& o) {
  const std::pair<const char*, int64_t> counts[] = {
      {"max_steps", o.max_steps},
      {"patience", o.patience},
      {"checkpoint_every", o.checkpoint_every},
      {"validate_every.steps", o.validate_every.steps},
      {"limit_batches.train", o.limit_batches.train},
      {"limit_batches.validation", o.limit_batches.validation},
      {"limit_batches.test", o.limit_batches.test},
      {"overfit_batches", o.overfit_batches},
      {"sanity_batches", o.sanity_batches},
      {"log_every", o.log_every},
      {"lens", o.lens},
      {"shadow", o.shadow},
      {"black_box.bytes", o.black_box.bytes}};
  for (const auto& [name, count] : counts) {
    check(count >= 0, "trainer: got ", name, " ", count, ", expected no negative number");
  }
  check(o.validate_every.epochs >= 1, "trainer: got validate_every.epochs ",
        o.validate_every.epochs, ", expected at least 1");
  check(o.accumulate >= 1, "trainer: got accumulate ", o.accumulate, ", expected at least 1");
  check(std::isfinite(o.max_time) && o.max_time >= 0, "trainer: got max_time ", o.max_time,
        ", expected seconds, no negative number");
  const int64_t epochs = o.epochs.value_or(1);
  check(epochs >= 1 || (epochs == 0 && (o.max_steps > 0 || o.max_time > 0)), "trainer: got epochs ",
        epochs, ", expected at least 1, or 0 beside max_steps or max_time");
}

}  // namespace

TrainerOptions checked(TrainerOptions options) {
  check_counts(options);
  if (options.run.empty()) {
    check(options.lens == 0, "trainer: got lens ", options.lens,
          " without a run directory, which its file goes to");
    check(options.shadow == 0, "trainer: got shadow ", options.shadow,
          " without a run directory, which its file goes to");
    check(!options.record_gradients && options.black_box.bytes == 0, "trainer: got ",
          options.record_gradients ? "record_gradients" : "black_box",
          " without a run directory, which its file goes to");
    check(!options.resume && !options.overwrite, "trainer: got ",
          options.resume ? "resume" : "overwrite", " without a run directory");
    check(options.on_nan != OnNan::roll_back,
          "trainer: got OnNan::roll_back without a run directory, whose checkpoints it returns to");
  }
  const auto& [factor, most] = options.roll_back;
  check(factor > 0 && factor < 1 && most >= 1, "trainer: got roll_back with factor ", factor,
        " and most ", most, ", expected a factor between 0 and 1, and at least one return");
  return options;
}

void check_parts(const RunParts& parts, const TrainerOptions& options) {
  const std::shared_ptr<Arena> arena = parts.model.parameters().arena();
  const bool sharded = arena && arena->sharding() != Sharding::none;
  check(options.lens == 0 || !sharded, "trainer: got lens ", options.lens,
        " with sharded parameters, expected whole ones, as the lens looks at all of a moment on "
        "one rank; leave one of them out");
  check(options.lens == 0 || parts.is_single(), "trainer: got lens ", options.lens,
        " in a run with phases, expected one optimizer, whose updates the lens looks at");
  const bool several = sharded || (options.group && options.group->size() > 1);
  check(options.shadow == 0 || (parts.is_single() && !several), "trainer: got shadow ",
        options.shadow, " in a run ", several ? "on several ranks" : "with phases",
        ", expected one rank and one optimizer; leave it out, or run the step on one rank");
  check(!parts.ema || !sharded,
        "trainer: got an Ema with sharded parameters, expected whole ones, as no rank has all "
        "masters; leave one of them out");
  check(!options.log_norms || !sharded || !parts.model.precision() ||
            parts.model.precision()->policy == Precision::kFull,
        "trainer: got log_norms with masters that are sharded, expected whole ones; leave one of "
        "them out");
  check(parts.is_single() || !sharded,
        "trainer: got phases with sharded parameters, expected one optimizer; leave one of them "
        "out");
}

}  // namespace binade::train
