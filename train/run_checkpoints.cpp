#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/identity.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/checkpoint/fields_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/run_checkpoints_internal.h>
#include <binade/train/run_directory.h>

namespace binade::train {
namespace {

using Fields = RunCheckpoints::Fields;
using manifest::count;
using manifest::real;
using manifest::shortest;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

std::vector<CheckpointFile> files(const NamedTensors& model, const NamedTensors& optimizer) {
  return {
      {kModelFile, tensor_bytes(model), [&model](OutputFile& file) { write_tensors(file, model); }},
      {kOptimizerFile, tensor_bytes(optimizer),
       [&optimizer](OutputFile& file) { write_tensors(file, optimizer); }}};
}

}  // namespace

RunCheckpoints::RunCheckpoints(const TrainingParts& parts, const TrainerOptions& options,
                               const Ranks& ranks, const RunDirectory* directory)
    : parts_(parts),
      options_(options),
      ranks_(ranks),
      directory_(directory),
      settings_(manifest::with_version(options.settings)) {
  ranks_.on_root([this] {
    if (directory_) {
      store_ = std::make_unique<CheckpointStore>(directory_->path(), 2, directory_->files());
    }
  });
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
  manifest::add_random(fields, "random_", generator());
  manifest::add_scalars(fields, "optimizer.", parts_.optimizer.state_scalars());
  if (parts_.scaler) {
    manifest::add_scalars(fields, "scaler.", parts_.scaler->state_scalars());
  }
  if (parts_.schedule) {
    fields["schedule_step"] = shortest(parts_.schedule->step());
  }
  if (parts_.plateau) {
    manifest::add_scalars(fields, "plateau.", parts_.plateau->state_scalars());
  }
  if (state.full_precision) {
    fields["full_precision"] = "1";
  }
  if (state.rollbacks > 0) {
    fields["rollbacks"] = shortest(state.rollbacks);
    fields["rate_scale"] = shortest(state.rate_scale);
  }
  manifest::add_settings(fields, settings_);
  fields.insert(data_.begin(), data_.end());
  return fields;
}

// Throws before anything is changed.
RunState RunCheckpoints::parse(const Fields& fields) const {
  RunState state;
  state.epoch = count(fields, "epoch");
  state.batch = count(fields, "batch");
  state.steps = count(fields, "steps");
  state.applied_before = count(fields, "skipped") - state.steps;  // step_count() is added later
  state.loss = RunningLoss(real(fields, "loss_sum") / ranks_.count());
  state.samples = count(fields, "samples");
  state.global_batch = fields.contains("global_batch") ? count(fields, "global_batch") : 0;
  state.best_loss = real(fields, "best_loss");
  state.best_epoch = count(fields, "best_epoch", -1);
  state.bad_epochs = count(fields, "bad_epochs");
  state.finished = count(fields, "finished") != 0;
  if (fields.contains("rollbacks")) {
    state.rollbacks = count(fields, "rollbacks");
    state.rate_scale = real(fields, "rate_scale", 0, 1);
  }
  (void)manifest::random_of(fields, "random_");
  if (parts_.schedule) {
    (void)count(fields, "schedule_step");
  }
  if (parts_.plateau) {
    (void)count(fields, "plateau.bad_looks");
    (void)count(fields, "plateau.cooldown");
  }
  for (const char* prefix : {"optimizer.", "scaler.", "plateau."}) {
    (void)manifest::scalars_of(fields, prefix);
  }
  return state;
}

// Loads a checkpoint into the parts, or changes none of them (but full precision stays).
void RunCheckpoints::load(const Fields& fields, const NamedTensors& model,
                          const NamedTensors& optimizer) {
  const auto scaler_before = parts_.scaler ? parts_.scaler->state_scalars() : optim::NamedScalars();
  const auto optimizer_before = parts_.optimizer.state_scalars();
  const NamedTensors model_before = host_copies(parts_.model.state());
  const NamedTensors moments_before = host_copies(parts_.optimizer.state_tensors());
  try {
    if (parts_.scaler) {
      parts_.scaler->load_state(manifest::scalars_of(fields, "scaler."));
    }
    parts_.model.load_state(model);
    parts_.optimizer.load_state(optimizer, manifest::scalars_of(fields, "optimizer."));
  } catch (...) {
    parts_.model.load_state(model_before);
    parts_.optimizer.load_state(moments_before, optimizer_before);  // masters too
    if (parts_.scaler) {
      parts_.scaler->load_state(scaler_before);
    }
    throw;
  }
  generator() = manifest::random_of(fields, "random_");
  if (parts_.schedule) {
    parts_.schedule->set_step(count(fields, "schedule_step"));
  }
  if (parts_.plateau) {
    parts_.plateau->load_state(manifest::scalars_of(fields, "plateau."));
  }
  for (const char* name : {"data.train", "data.validation"}) {
    if (const auto found = fields.find(name); found != fields.end()) {
      data_.emplace(name, found->second);  // a run that returns to a checkpoint keeps its loaders
    }
  }
}

void RunCheckpoints::check_data(const data::Loader& train, const data::Loader* validation) {
  const std::pair<const char*, const data::Loader*> loaders[] = {{"data.train", &train},
                                                                 {"data.validation", validation}};
  if (options_.run.empty()) {
    return;
  }
  for (const auto& [name, loader] : loaders) {
    if (!loader) {
      continue;
    }
    const data::DataIdentity& now = loader->identity();
    const auto before = data_.find(name);
    const std::string differs =
        before == data_.end() ? "" : difference(now, data::parse_identity(before->second));
    if (!differs.empty()) {
      manifest::refuse_other_data(differs, text(name + 5, " data"), options_.force);
    }
    data_[name] = to_string(now);
  }
}

void RunCheckpoints::prepare() {
  if (!options_.async_save || options_.run.empty()) {
    return;
  }
  const NamedTensors optimizer = parts_.optimizer.state_tensors();
  if (store_) {
    saves_.reserve(parts_.model.state(), optimizer);
  }
}

void RunCheckpoints::save(const RunState& state) {
  if (options_.run.empty()) {
    return;
  }
  write("checkpoint", state, parts_.model.state(), &CheckpointStore::save);
}

void RunCheckpoints::save_best(const RunState& state, const NamedTensors& best) {
  if (options_.run.empty()) {
    return;
  }
  write("checkpoint of the best epoch", state, best, &CheckpointStore::save_best);
}

// Collective: the tensors of a sharded optimizer are. `save` is a function of the store.
template <class Save>
void RunCheckpoints::write(const char* what, const RunState& state, const NamedTensors& model,
                           Save save) {
  const NamedTensors optimizer = parts_.optimizer.state_tensors();
  if (!store_) {
    return;
  }
  const auto write_now = [this, what, save, step = state.steps](const NamedTensors& model,
                                                                const NamedTensors& optimizer,
                                                                const Fields& fields) {
    if (may_save(what, model, optimizer)) {
      ((*store_).*save)(step, files(model, optimizer), fields);
      show_warnings();
    }
  };
  if (!options_.async_save) {
    write_now(model, optimizer, fields(state));
    return;
  }
  auto copy = saves_.copy(state.steps, model, optimizer);
  saves_.add([write_now, copy = std::move(copy), fields = fields(state)] {
    write_now(copy->model, copy->optimizer, fields);
  });
}

// False, with a warning, if a tensor is not finite.
bool RunCheckpoints::may_save(const char* what, const NamedTensors& model,
                              const NamedTensors& optimizer) const {
  std::string bad = first_not_finite(model);
  bad = bad.empty() ? first_not_finite(optimizer) : bad;
  if (!bad.empty()) {
    warn(text("trainer: no ", what, " is saved, ", bad, " is not finite; the one before it stays"));
  }
  return bad.empty();
}

void RunCheckpoints::show_warnings() const {
  for (const std::string& warning : store_->take_warnings()) {
    warn(warning);
  }
}

// The content of a checkpoint; rank 0 reads it for all ranks.
struct RunCheckpoints::Resumed {
  Fields fields;  // empty: there is no checkpoint
  NamedTensors model, optimizer, best;
};

RunCheckpoints::Resumed RunCheckpoints::read() {
  const std::optional<Checkpoint> found = store_->newest_verified();
  if (!found) {
    show_warnings();
    return {};
  }
  manifest::check_settings(settings_, *found, options_.force);
  Resumed all{.fields = found->fields,
              .model = load_tensors(found->file(kModelFile), store_->files()),
              .optimizer = load_tensors(found->file(kOptimizerFile), store_->files()),
              .best = {}};
  read_best(all);
  show_warnings();
  return all;
}

// Without readable best weights the next epoch is the best one so far.
void RunCheckpoints::read_best(Resumed& all) const {
  const int64_t epoch = count(all.fields, "best_epoch", -1);
  if (epoch < 0) {
    return;
  }
  if (const std::optional<Checkpoint> best = store_->best_verified()) {
    all.best = load_tensors(best->file(kModelFile), store_->files());
    return;
  }
  warn(text("resume: got no readable ", store_->path(), "/best, the weights of epoch ", epoch + 1,
            "; the best epoch is chosen from those to come"));
  all.fields["best_epoch"] = "-1";
  all.fields["best_loss"] = "0";
}

bool RunCheckpoints::resume(RunState& state, NamedTensors& best,
                            const std::function<void()>& to_full_precision) {
  Resumed all;
  ranks_.on_root([&] {
    if (store_) {
      all = read();
    }
  });
  all.fields = ranks_.share(all.fields);
  if (all.fields.empty()) {
    return false;
  }
  RunState resumed = parse(all.fields);
  const NamedTensors model = ranks_.share(all.model), optimizer = ranks_.share(all.optimizer);
  if (all.fields.contains("full_precision")) {
    to_full_precision();
    resumed.full_precision = true;
  }
  load(all.fields, model, optimizer);
  if (parts_.schedule) {
    parts_.schedule->set_scale(resumed.rate_scale);
  }
  resumed.applied_before += parts_.optimizer.step_count();
  state = resumed;
  best = ranks_.share(all.best);
  return true;
}

}  // namespace binade::train
