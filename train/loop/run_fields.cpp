#include <binade/core/tensor/create.h>
#include <binade/train/loop/run_fields_internal.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace binade::train {
namespace {

template <class T>
std::string shortest(T value) {  // reads back equal
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

// A number of the manifest from low to high.
template <class T>
T number(const RunFields& fields, const std::string& name, T low, T high) {
  const auto found = fields.find(name);
  check(found != fields.end(), "checkpoint: got no field '", name, "' in the manifest");
  T value{};
  const std::string& text = found->second;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(status == std::errc() && end == text.data() + text.size(), "checkpoint: got '", text,
        "' in field '", name, "', expected a number");
  check(!(value < low || value > high), "checkpoint: got ", value, " in field '", name,
        "', expected ", low, " to ", high);
  return value;
}

double real(const RunFields& fields,
            const std::string& name) {  // a loss: any number, also no number
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return number<double>(fields, name, -kInfinity, kInfinity);
}

// Sums and differences of a few of these do not overflow, and doubles hold them exactly.
constexpr int64_t kMostCounted = int64_t{1} << 53;

void add_scalars(RunFields& fields, const std::string& prefix, const optim::NamedScalars& scalars) {
  for (const auto& [name, value] : scalars) {
    fields[prefix + name] = shortest(value);
  }
}

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
      mean.weight = number<double>(fields, stem + ".weight", 0, double{kMostCounted}) / ranks;
    }
  }
  return values;
}

}  // namespace

int64_t count_of(const RunFields& fields, const std::string& name, int64_t low) {
  return number<int64_t>(fields, name, low, kMostCounted);
}

Generator random_of(const RunFields& fields) {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  return {number<uint64_t>(fields, "random_seed", 0, kAny),
          number<uint64_t>(fields, "random_offset", 0, kAny)};
}

optim::NamedScalars scalars_of(const RunFields& fields, const std::string& prefix) {
  optim::NamedScalars scalars;
  for (auto at = fields.lower_bound(prefix); at != fields.end() && at->first.starts_with(prefix);
       ++at) {
    // Some of them are counts; only the best metric of a plateau may be any finite number.
    const double value = real(fields, at->first);
    const double most =
        at->first == "plateau.best" ? std::numeric_limits<double>::max() : double{kMostCounted};
    check(std::abs(value) <= most, "checkpoint: got ", value, " in field '", at->first,
          "', expected a number up to ", most);
    scalars[at->first.substr(prefix.size())] = value;
  }
  return scalars;
}

RunFields fields_of(const RunState& state, const RunParts& parts, int ranks) {
  RunFields fields;
  fields["epoch"] = shortest(state.epoch);
  fields["batch"] = shortest(state.batch);
  fields["steps"] = shortest(state.steps);
  add_sums(fields, "sum.", state.losses, ranks);
  add_sums(fields, "log.", state.logs, ranks);
  fields["global_batch"] = shortest(state.global_batch);
  fields["best_value"] = shortest(state.best_value);
  fields["best_epoch"] = shortest(state.best_epoch);
  fields["bad_looks"] = shortest(state.bad_looks);
  fields["finished"] = shortest(static_cast<int>(state.finished));
  fields["random_seed"] = shortest(generator().seed);
  fields["random_offset"] = shortest(generator().offset);
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
  state.epoch = count_of(fields, "epoch");
  state.batch = count_of(fields, "batch");
  state.steps = count_of(fields, "steps");
  state.losses = sums_of(fields, "sum.", ranks);
  state.logs = sums_of(fields, "log.", ranks);
  state.global_batch = fields.contains("global_batch") ? count_of(fields, "global_batch") : 0;
  state.best_value = real(fields, "best_value");
  state.best_epoch = count_of(fields, "best_epoch", -1);
  state.bad_looks = count_of(fields, "bad_looks");
  state.finished = count_of(fields, "finished") != 0;
  if (fields.contains("rollbacks")) {
    state.rollbacks = count_of(fields, "rollbacks");
    state.rate_scale = number<double>(fields, "rate_scale", 0, 1);
  }
  if (fields.contains("seconds")) {
    state.seconds = number<double>(fields, "seconds", 0, double{kMostCounted});
  }
  (void)random_of(fields);
  for (const auto& phase : parts.phases) {
    (void)count_of(fields, phase->prefix("phase") + "skipped");
    if (phase->schedule) {
      (void)count_of(fields, phase->prefix("schedule") + "step");
    }
  }
  if (parts.plateau) {
    (void)count_of(fields, "plateau.bad_looks");
    (void)count_of(fields, "plateau.cooldown");
  }
  for (const char* prefix : {"optimizer.", "scaler.", "plateau."}) {  // of all phases
    (void)scalars_of(fields, prefix);
  }
  return state;
}

}  // namespace binade::train
