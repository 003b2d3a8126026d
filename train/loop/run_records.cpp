// The records of a run besides its metrics: the journal, and the owners of memory when it ran out.
#include <binade/core/device/memory_limit.h>
#include <binade/core/observe/warning.h>
#include <binade/train/finders/memory_forecast.h>
#include <binade/train/trainer_run_internal.h>

#include <algorithm>

namespace binade::train {
namespace {

constexpr int64_t kLeakEvery = 64;                // steps between looks
constexpr int64_t kLeakBytes = int64_t{1} << 20;  // per step: less is not worth a warning

RunFacts facts_of(const TrainerOptions& options, const RunParts& parts) {
  RunFacts facts{.settings = options.settings, .model = {}, .device = parts.device()};
  for (const auto& [name, value] : options.notes) {
    facts.settings.emplace(name, value);
  }
  const auto set = [&facts](const char* name, const auto& value) {
    facts.settings.emplace(name, text(value));
  };
  set("accumulate", options.accumulate);
  set("patience", options.patience);
  if (options.clip_norm) {
    set("clip_norm", *options.clip_norm);
  }
  if (options.group) {
    set("ranks", options.group->size());
  }
  facts.model = {{"parameters", text(parts.model.parameter_count())},
                 {"modules", text(parts.model.module_paths().size())},
                 {"state", to_string(state_bytes(parts.model, &parts.optimizer()))}};
  return facts;
}

}  // namespace

void TrainerRun::begin_journal() {
  tracker_ = std::make_unique<MemoryTracker>();
  if (!directory_ || !options_.report) {
    return;
  }
  journal_ = std::make_unique<RunJournal>(options_.run, directory_->files(), state_.steps);
  samples_ = 0;
  journal_->begin(facts_of(options_, parts_));
}

void TrainerRun::record_step() {
  tracker_->end_step();
  if (!warned_of_leak_ && tracker_->steps() % kLeakEvery == 0) {
    for (const MemoryLeak& leak : tracker_->leaks()) {
      if (leak.bytes_per_step > kLeakBytes) {
        warned_of_leak_ = true;
        warn("trainer: memory grows, " + to_string(leak));
        break;
      }
    }
  }
  if (!journal_ || !journal_->is_due()) {
    return;
  }
  const Tensor& loss = runner_.output().loss;
  NamedValues values;
  if (loss.defined() && loss.device().is_cpu()) {  // does not wait for a device
    values.emplace_back("loss", loss.item());
    add_rates(values);
    values.emplace_back("skipped_steps", static_cast<double>(parts_.skipped(state_.steps)));
  }
  journal_->note({.step = state_.steps,
                  .epoch = state_.epoch,
                  .samples = samples_,
                  .loader = loader_,
                  .values = values},
                 tracker_.get());
}

void TrainerRun::end_journal(const std::string& outcome) {
  if (journal_) {
    journal_->end(outcome, state_.steps, state_.epoch);
  }
  tracker_.reset();
}

// The forecast of the largest batch for the memory of the process. The failed step has freed its
// memory, so small steps can run.
std::string TrainerRun::largest_batch_words(data::Loader& train,
                                            const MemoryRefusal& refusal) const {
  if (!parts_.is_single() || !ranks_.alone() || train.options().batch < 2) {
    return "";
  }
  try {
    const FinderParts parts{.model = parts_.model,
                            .optimizer = parts_.optimizer(),
                            .scaler = parts_.first().scaler,
                            .step = parts_.first().step,
                            .clip_norm = options_.clip_norm};
    const BatchMaker batches = BatchMaker::largest(train, 1);
    const int64_t probe = std::max<int64_t>(train.options().batch / 8, 1);
    const int64_t fits =
        measure_memory(parts, batches, probe).largest_batch(memory_room(refusal.device).bytes);
    return fits == 0 ? "; not even a batch of one sample fits"
                     : text("; by forecast a batch of ", fits, " fits");
  } catch (const std::exception&) {
    return "";  // the error says enough without a forecast
  }
}

// Adds the modules that held the memory, and the largest batch that would fit.
void TrainerRun::explain(OutOfMemory& error, data::Loader& train) const {
  const auto refusal = tracker_ ? tracker_->refusal() : std::nullopt;
  if (!refusal) {
    return;
  }
  const StateBytes states = state_bytes(parts_.model, parts_.first().optimizer);
  error.add_context(text(
      "(in step ", state_.steps + 1, refusal->label.empty() ? "" : ", module " + refusal->label,
      ", batch ", train.options().batch, ": ", to_string(states), "; since the run began ",
      memory_words(refusal->holders), " were held", largest_batch_words(train, *refusal), ")"));
}

}  // namespace binade::train
