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
    check(options.checkpoint_every == 0 && !options.async_save, "trainer: got ",
          options.async_save ? "async_save" : text("checkpoint_every ", options.checkpoint_every),
          " without a run directory, which checkpoints go to; set `run` (--run DIR)");
    check(options.on_nan != OnNan::roll_back,
          "trainer: got OnNan::roll_back without a run directory, whose checkpoints it returns to");
  }
  check(!options.force || options.resume,
        "trainer: got force without resume, expected both to resume with other settings or data, "
        "or overwrite (--overwrite) to begin anew and keep the old run as RUN.replaced-N");
  const auto& [factor, most] = options.roll_back;
  check(factor > 0 && factor < 1 && most >= 1, "trainer: got roll_back with factor ", factor,
        " and most ", most, ", expected a factor between 0 and 1, and at least one return");
  return options;
}

void check_intervals(const RunParts& parts, int64_t steps) {
  for (const auto& phase : parts.phases) {
    check(phase->every <= steps, "trainer: got every", phase->words(), " = ", phase->every,
          " for a run of ", steps, " steps, in which it would never happen; expected at most ",
          steps);
  }
}

void check_parts(const RunParts& parts, const TrainerOptions& options) {
  const std::shared_ptr<Arena> arena = parts.model.parameters().arena();
  for (const auto& phase : parts.phases) {
    check(phase->optimizer->parameters().arena() == arena, "trainer: got an optimizer",
          phase->words(),
          " of another model, expected one of the parameters() of the model that is trained");
    check(!phase->schedule || phase->schedule->follows(*phase->optimizer),
          "trainer: got a schedule", phase->words(),
          " of another optimizer, expected one that was made for this optimizer");
  }
  check(!parts.plateau || parts.plateau->follows(parts.optimizer()),
        "trainer: got a plateau of another optimizer, expected one that was made for this one");
  check(!parts.ema || &parts.ema->model() == &parts.model,
        "trainer: got an Ema of another model, expected one of the model that is trained");
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
