#include <binade/core/tensor/create.h>
#include <binade/train/loop/run_fields_internal.h>

namespace binade::train {
namespace {

using manifest::add_scalars;
using manifest::real;
using manifest::shortest;

// Sums of the epoch so far, of all ranks: PREFIX.NAME.sum and .weight.
void add_sums(RunFields& fields, const std::string& prefix, const RunningValues& values,
              int ranks) {
  for (const RunningMean& mean : values.all()) {
    fields[prefix + mean.name + ".sum"] = shortest(mean.sum.total() * ranks);
    fields[prefix + mean.name + ".weight"] = shortest(mean.weight * ranks);
  }
}

RunningValues sums_of(const RunFields& fields, const std::string& prefix, int ranks) {
  constexpr std::string_view kSum = ".sum";
  RunningValues values;
  for (auto at = fields.lower_bound(prefix); at != fields.end() && at->first.starts_with(prefix);
       ++at) {
    if (at->first.ends_with(kSum) && at->first.size() > prefix.size() + kSum.size()) {
      const std::string stem = at->first.substr(0, at->first.size() - kSum.size());
      RunningMean& mean = values.at(stem.substr(prefix.size()));
      mean.sum = RunningLoss(real(fields, at->first) / ranks);
      mean.weight = real(fields, stem + ".weight", 0, double{manifest::kMostCounted}) / ranks;
    }
  }
  return values;
}

}  // namespace

RunFields fields_of(const RunState& state, const RunParts& parts, int ranks) {
  RunFields fields;
  fields["epoch"] = shortest(state.epoch);
  fields["batch"] = shortest(state.batch);
  fields["steps"] = shortest(state.steps);
  add_sums(fields, "sum.", state.losses, ranks);
  add_sums(fields, "log.", state.logs, ranks);
  fields["global_batch"] = shortest(state.global_batch);
  fields["accumulate"] = shortest(state.accumulate);
  fields["best_value"] = shortest(state.best_value);
  fields["best_epoch"] = shortest(state.best_epoch);
  fields["bad_looks"] = shortest(state.bad_looks);
  fields["finished"] = shortest(static_cast<int>(state.finished));
  manifest::add_random(fields, kRandom, generator());
  for (const auto& phase : parts.phases) {
    fields[phase->prefix("phase") + "skipped"] = shortest(phase->skipped(state.steps));
    add_scalars(fields, phase->prefix("optimizer"), phase->optimizer->state_scalars());
    if (phase->scaler) {
      add_scalars(fields, phase->prefix("scaler"), phase->scaler->state_scalars());
    }
    if (phase->schedule) {
      fields[phase->prefix("schedule") + "step"] = shortest(phase->schedule->step());
    }
  }
  if (parts.plateau) {
    add_scalars(fields, "plateau.", parts.plateau->state_scalars());
  }
  if (state.full_precision) {
    fields["full_precision"] = "1";
  }
  if (state.seconds > 0) {
    fields["seconds"] = shortest(state.seconds);
  }
  if (state.rollbacks > 0) {
    fields["rollbacks"] = shortest(state.rollbacks);
    fields["rate_scale"] = shortest(state.rate_scale);
  }
  return fields;
}

// Throws before anything is changed.
RunState state_of(const RunFields& fields, const RunParts& parts, int ranks) {
  RunState state;
  state.epoch = manifest::count(fields, "epoch");
  state.batch = manifest::count(fields, "batch");
  state.steps = manifest::count(fields, "steps");
  state.losses = sums_of(fields, "sum.", ranks);
  state.logs = sums_of(fields, "log.", ranks);
  state.global_batch =
      fields.contains("global_batch") ? manifest::count(fields, "global_batch") : 0;
  state.accumulate = fields.contains("accumulate") ? manifest::count(fields, "accumulate", 1) : 0;
  state.best_value = real(fields, "best_value");
  state.best_epoch = manifest::count(fields, "best_epoch", -1);
  state.bad_looks = manifest::count(fields, "bad_looks");
  state.finished = manifest::count(fields, "finished") != 0;
  if (fields.contains("rollbacks")) {
    state.rollbacks = manifest::count(fields, "rollbacks");
    state.rate_scale = real(fields, "rate_scale", 0, 1);
  }
  if (fields.contains("seconds")) {
    state.seconds = real(fields, "seconds", 0, double{manifest::kMostCounted});
  }
  (void)manifest::random_of(fields, kRandom);
  for (const auto& phase : parts.phases) {
    (void)manifest::count(fields, phase->prefix("phase") + "skipped");
    if (phase->schedule) {
      (void)manifest::count(fields, phase->prefix("schedule") + "step");
    }
  }
  if (parts.plateau) {
    (void)manifest::count(fields, "plateau.bad_looks");
    (void)manifest::count(fields, "plateau.cooldown");
  }
  for (const char* prefix : {"optimizer.", "scaler.", "plateau."}) {  // of all phases
    (void)manifest::scalars_of(fields, prefix);
  }
  return state;
}

}  // namespace binade::train
