#include <binade/core/tensor/create.h>
#include <binade/train/model_file.h>
#include <binade/train/run_checkpoints_internal.h>

#include <charconv>
#include <cstdio>

namespace binade::train {
namespace {

using Fields = RunCheckpoints::Fields;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

template <class T>
std::string shortest(T value) {  // reads back equal
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

template <class T>
T number(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  check(found != fields.end(), "checkpoint: got no field '", name, "' in the manifest");
  T value{};
  const std::string& text = found->second;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(status == std::errc() && end == text.data() + text.size(), "checkpoint: got '", text,
        "' in field '", name, "', expected a number");
  return value;
}

void add_scalars(Fields& fields, const std::string& prefix, const optim::NamedScalars& scalars) {
  for (const auto& [name, value] : scalars) {
    fields[prefix + name] = shortest(value);
  }
}

optim::NamedScalars scalars_of(const Fields& fields, const std::string& prefix) {
  optim::NamedScalars scalars;
  for (auto at = fields.lower_bound(prefix); at != fields.end() && at->first.starts_with(prefix);
       ++at) {
    scalars[at->first.substr(prefix.size())] = number<double>(fields, at->first);
  }
  return scalars;
}

// Throws one error that lists every setting which differs.
void check_settings(const Checkpoint& checkpoint,
                    const std::map<std::string, std::string>& settings) {
  std::string now, before;
  for (const auto& [name, value] : settings) {
    const auto old = checkpoint.fields.find("setting." + name);
    if (old != checkpoint.fields.end() && old->second != value) {
      now += (now.empty() ? "" : ", ") + name + " = " + value;
      before += (before.empty() ? "" : ", ") + name + " = " + old->second;
    }
  }
  check(now.empty(), "resume: got ", now, ", but ", checkpoint.path, " was trained with ", before,
        "; resume with the same settings and data, or use another run directory");
}

std::vector<CheckpointFile> files(const NamedTensors& model, const NamedTensors& optimizer) {
  return {
      {kModelFile, tensor_bytes(model), [&model](OutputFile& file) { write_tensors(file, model); }},
      {kOptimizerFile, tensor_bytes(optimizer),
       [&optimizer](OutputFile& file) { write_tensors(file, optimizer); }}};
}

}  // namespace

RunCheckpoints::RunCheckpoints(const TrainingParts& parts, const TrainerOptions& options,
                               const Ranks& ranks)
    : parts_(parts), options_(options), ranks_(ranks) {
  if (!options_.run.empty() && ranks_.is_root()) {
    store_ = std::make_unique<CheckpointStore>(options_.run);
  }
}

RunCheckpoints::Fields RunCheckpoints::fields(const RunState& state) const {
  Fields fields;
  fields["epoch"] = shortest(state.epoch);
  fields["batch"] = shortest(state.batch);
  fields["steps"] = shortest(state.steps);
  fields["skipped"] = shortest(state.skipped(parts_.optimizer));
  fields["loss_sum"] = shortest(state.loss.total() * ranks_.count());
  fields["samples"] = shortest(state.samples);
  fields["global_batch"] = shortest(state.global_batch);
  fields["best_loss"] = shortest(state.best_loss);
  fields["best_epoch"] = shortest(state.best_epoch);
  fields["bad_epochs"] = shortest(state.bad_epochs);
  fields["finished"] = shortest(static_cast<int>(state.finished));
  fields["random_seed"] = shortest(generator().seed);
  fields["random_offset"] = shortest(generator().offset);
  add_scalars(fields, "optimizer.", parts_.optimizer.state_scalars());
  if (parts_.scaler) {
    add_scalars(fields, "scaler.", parts_.scaler->state_scalars());
  }
  if (parts_.schedule) {
    fields["schedule_step"] = shortest(parts_.schedule->step());
  }
  if (parts_.plateau) {
    add_scalars(fields, "plateau.", parts_.plateau->state_scalars());
  }
  if (state.full_precision) {
    fields["full_precision"] = "1";
  }
  for (const auto& [name, value] : options_.settings) {
    fields["setting." + name] = value;
  }
  return fields;
}

void RunCheckpoints::read_fields(const Fields& fields, RunState& state) {
  state.epoch = number<int64_t>(fields, "epoch");
  state.batch = number<int64_t>(fields, "batch");
  state.steps = number<int64_t>(fields, "steps");
  state.applied_before =
      parts_.optimizer.step_count() - state.steps + number<int64_t>(fields, "skipped");
  state.loss = RunningLoss(number<double>(fields, "loss_sum") / ranks_.count());
  state.samples = number<int64_t>(fields, "samples");
  state.global_batch =
      fields.contains("global_batch") ? number<int64_t>(fields, "global_batch") : 0;
  state.best_loss = number<double>(fields, "best_loss");
  state.best_epoch = number<int64_t>(fields, "best_epoch");
  state.bad_epochs = number<int64_t>(fields, "bad_epochs");
  state.finished = number<int>(fields, "finished") != 0;
  generator() = {number<uint64_t>(fields, "random_seed"),
                 number<uint64_t>(fields, "random_offset")};
  if (parts_.scaler) {
    parts_.scaler->load_state(scalars_of(fields, "scaler."));
  }
  if (parts_.schedule) {
    parts_.schedule->set_step(number<int64_t>(fields, "schedule_step"));
  }
  if (parts_.plateau) {
    parts_.plateau->load_state(scalars_of(fields, "plateau."));
  }
}

void RunCheckpoints::save(const RunState& state) {
  if (options_.run.empty()) {
    return;
  }
  const NamedTensors model = parts_.model.state(), optimizer = parts_.optimizer.state_tensors();
  if (store_) {
    store_->save(state.steps, files(model, optimizer), fields(state));
  }
}

void RunCheckpoints::save_best(const RunState& state, const NamedTensors& best) {
  if (options_.run.empty()) {
    return;
  }
  const NamedTensors optimizer = parts_.optimizer.state_tensors();
  if (store_) {
    store_->save_best(state.steps, files(best, optimizer), fields(state));
  }
}

// The content of a checkpoint; rank 0 reads it for all ranks.
struct RunCheckpoints::Resumed {
  Fields fields;  // empty: there is no checkpoint
  NamedTensors model, optimizer, best;
};

RunCheckpoints::Resumed RunCheckpoints::read() {
  if (!store_) {
    return {};
  }
  const std::optional<Checkpoint> found = store_->newest_verified();
  for (const std::string& warning : store_->take_warnings()) {
    std::fprintf(stderr, "binade: warning: %s\n", warning.c_str());
  }
  if (!found) {
    return {};
  }
  check_settings(*found, options_.settings);
  Resumed all{.fields = found->fields,
              .model = load_tensors(found->file(kModelFile)),
              .optimizer = load_tensors(found->file(kOptimizerFile)),
              .best = {}};
  if (number<int64_t>(all.fields, "best_epoch") >= 0) {
    const std::optional<Checkpoint> best = store_->best_verified();
    check(best.has_value(), "resume: got no readable ", store_->path(),
          "/best, which holds the best weights so far; train into another run directory");
    all.best = load_tensors(best->file(kModelFile));
  }
  return all;
}

bool RunCheckpoints::resume(RunState& state, NamedTensors& best,
                            const std::function<void()>& to_full_precision) {
  // Loads that can fail come first; each of them changes all of its tensors or none.
  Resumed all = read();
  all.fields = ranks_.share(all.fields);
  if (all.fields.empty()) {
    return false;
  }
  const NamedTensors model = ranks_.share(all.model), optimizer = ranks_.share(all.optimizer);
  if (all.fields.contains("full_precision")) {
    to_full_precision();
  }
  parts_.model.load_state(model);
  parts_.optimizer.load_state(optimizer, scalars_of(all.fields, "optimizer."));
  read_fields(all.fields, state);
  best = ranks_.share(all.best);
  return true;
}

}  // namespace binade::train
