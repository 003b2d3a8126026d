#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/identity.h>
#include <binade/nn/format_histories.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/run_checkpoints_internal.h>
#include <binade/train/run_directory.h>

namespace binade::train {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kEmaFile = "ema.safetensors";

// The part of a list whose names begin with the prefix, without it.
NamedTensors with_prefix(const NamedTensors& tensors, const std::string& prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) {
      part.emplace_back(name.substr(prefix.size()), tensor);
    }
  }
  return part;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const RunParts& parts, const TrainerOptions& options,
                               const Ranks& ranks, const RunDirectory* directory)
    : parts_(parts),
      options_(options),
      ranks_(ranks),
      directory_(directory),
      settings_(manifest::with_version(options.settings)) {
  add_settings();
  ranks_.on_root([this] {
    if (directory_) {
      store_ = std::make_unique<CheckpointStore>(directory_->path(), 2, directory_->files());
    }
  });
}

RunFields RunCheckpoints::fields(const RunState& state) const {
  RunFields fields = fields_of(state, parts_, ranks_.count());
  manifest::add_settings(fields, settings_);
  manifest::add_stated(fields, stated_);
  fields.insert(data_.begin(), data_.end());
  return fields;
}

// Loads a checkpoint into the parts, or changes none of them (but full precision stays).
void RunCheckpoints::load(const Resumed& all) {
  struct Before {
    optim::NamedScalars scaler, optimizer;
    NamedTensors moments;
  };
  std::vector<Before> before;
  for (const auto& phase : parts_.phases) {
    before.push_back({phase->scaler ? phase->scaler->state_scalars() : optim::NamedScalars(),
                      phase->optimizer->state_scalars(),
                      host_copies(phase->optimizer->state_tensors())});
  }
  const NamedTensors model_before = host_copies(parts_.model.state());
  const NamedTensors scales_before = nn::format_histories(parts_.model);
  const auto restore = [&] {
    parts_.model.load_state(model_before);
    nn::load_format_histories(parts_.model, scales_before);
    for (size_t i = 0; i < before.size(); ++i) {
      const Phase& phase = *parts_.phases[i];
      phase.optimizer->load_state(before[i].moments, before[i].optimizer);  // masters too
      if (phase.scaler) {
        phase.scaler->load_state(before[i].scaler);
      }
    }
  };
  try {
    load_now(all);
  } catch (Error& error) {
    restore();
    error.add_context("(while loading the checkpoint of the run in " + options_.run + ")");
    throw;
  } catch (...) {
    restore();
    throw;
  }
  generator() = manifest::random_of(all.fields, kRandom);
  for (const auto& phase : parts_.phases) {
    if (phase->schedule) {
      phase->schedule->set_step(manifest::count(all.fields, phase->prefix("schedule") + "step"));
    }
  }
  if (parts_.plateau) {
    parts_.plateau->load_state(manifest::scalars_of(all.fields, "plateau."));
  }
  for (const char* name : {"data.train", "data.validation", "data.order"}) {
    if (const auto found = all.fields.find(name); found != all.fields.end()) {
      data_.emplace(name, found->second);  // a run that returns to a checkpoint keeps its loaders
    }
  }
}

void RunCheckpoints::load_now(const Resumed& all) {
  check(!parts_.ema || !all.ema.empty(),
        "resume: got an Ema, but the checkpoint has no averages; resume without it");
  for (const auto& phase : parts_.phases) {
    if (phase->scaler) {
      phase->scaler->load_state(manifest::scalars_of(all.fields, phase->prefix("scaler")));
    }
  }
  parts_.model.load_state(all.model);
  const NamedTensors own = with_prefix(all.scales, Ranks::prefix(ranks_.rank()));
  nn::load_format_histories(parts_.model,
                            own.empty() ? with_prefix(all.scales, Ranks::prefix(0)) : own);
  for (const auto& phase : parts_.phases) {
    phase->optimizer->load_state(
        phase->name.empty() ? all.optimizer : with_prefix(all.optimizer, phase->name + "/"),
        manifest::scalars_of(all.fields, phase->prefix("optimizer")));
  }
  if (parts_.ema) {
    parts_.ema->load_state(all.ema);
  }
}

void RunCheckpoints::check_data(const data::Loader& train, const data::Loader* validation,
                                bool in_epoch) {
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
  std::string& order = data_["data.order"];
  const std::string now = manifest::order_of(train);
  if (in_epoch && !order.empty() && order != now) {
    manifest::refuse_other_order(now, order, options_.force);
  }
  order = now;
}

// Collective, because the tensors of a sharded optimizer are gathered.
StateParts RunCheckpoints::tensors() const {
  StateParts parts{{kModelFile, parts_.model.state()},
                   {kOptimizerFile, parts_.optimizer_tensors()}};
  if (parts_.ema) {
    parts.push_back({kEmaFile, parts_.ema->state()});
  }
  if (NamedTensors scales = ranks_.collect(nn::format_histories(parts_.model)); !scales.empty()) {
    parts.push_back({kScalesFile, std::move(scales)});
  }
  return parts;
}

void RunCheckpoints::prepare() {
  if (!options_.async_save || options_.run.empty()) {
    return;
  }
  const StateParts parts = tensors();
  if (store_) {
    saves_.reserve(parts);
  }
}

bool RunCheckpoints::save(const RunState& state) {
  if (!options_.run.empty()) {
    write("checkpoint", state, &CheckpointStore::save);
  }
  return !options_.run.empty();
}

void RunCheckpoints::save_best(const RunState& state) {
  if (!options_.run.empty()) {
    write("checkpoint of the best epoch", state, &CheckpointStore::save_best);
  }
}

// Collective. `save` is a function of the store.
template <class Save>
void RunCheckpoints::write(const char* what, const RunState& state, Save save) {
  const StateParts parts = tensors();
  if (!store_) {
    return;
  }
  const auto write_now = [this, what, save, step = state.steps](const StateParts& parts,
                                                                const RunFields& fields) {
    if (may_save(what, parts)) {
      ((*store_).*save)(step, checkpoint_files(parts), fields);
      show_warnings();
    }
  };
  if (!options_.async_save) {
    write_now(parts, fields(state));
    return;
  }
  auto copy = saves_.copy(state.steps, parts);
  saves_.add([write_now, copy = std::move(copy), fields = fields(state)] {
    write_now(copy->parts(), fields);
  });
}

// False if a tensor is not finite.
bool RunCheckpoints::may_save(const char* what, const StateParts& parts) {
  for (const StatePart& part : parts) {
    std::string bad = first_not_finite(part.tensors);
    if (bad.empty()) {
      continue;
    }
    bad = (part.file == kEmaFile ? "the average of " : "") + bad;
    if (options_.on_nan == OnNan::ignore) {
      warn(text("trainer: no ", what, " is saved, ", bad,
                " is not finite; the one before it stays"));
    } else {
      const std::lock_guard lock(mutex_);
      refusal_ = bad;
    }
    return false;
  }
  return true;
}

std::string RunCheckpoints::take_refusal() {
  const std::lock_guard lock(mutex_);
  return std::exchange(refusal_, {});
}

void RunCheckpoints::show_warnings() const {
  for (const std::string& warning : store_->take_warnings()) {
    warn(warning);
  }
}

RunCheckpoints::Resumed RunCheckpoints::read() {
  const std::optional<Checkpoint> found = store_->newest_verified();
  if (!found) {
    show_warnings();
    return {};
  }
  manifest::check_settings(settings_, *found, options_.force);
  Resumed all{.path = found->path,
              .fields = found->fields,
              .model = load_tensors(found->file(kModelFile), store_->files()),
              .optimizer = load_tensors(found->file(kOptimizerFile), store_->files()),
              .ema = {},
              .scales = {},
              .best = {}};
  if (found->files.contains(kEmaFile)) {
    all.ema = load_tensors(found->file(kEmaFile), store_->files());
  }
  if (found->files.contains(kScalesFile)) {
    all.scales = load_tensors(found->file(kScalesFile), store_->files());
  }
  read_best(all);
  show_warnings();
  return all;
}

// Without readable best weights the next epoch is the best one so far.
void RunCheckpoints::read_best(Resumed& all) const {
  const int64_t epoch = manifest::count(all.fields, "best_epoch", -1);
  if (epoch < 0) {
    return;
  }
  if (const std::optional<Checkpoint> best = store_->best_verified()) {
    const bool averages = parts_.ema && best->files.contains(kEmaFile);
    all.best = load_tensors(best->file(averages ? kEmaFile : kModelFile), store_->files());
    std::erase_if(all.best, [](const auto& entry) { return entry.first == "ema_updates"; });
    return;
  }
  warn(text("resume: got no readable ", store_->path(), "/best, the weights of epoch ", epoch + 1,
            "; the best epoch is chosen from those to come"));
  all.fields["best_epoch"] = "-1";
  all.fields["best_value"] = "0";
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
  RunState resumed = state_of(all.fields, parts_, ranks_.count());
  for (NamedTensors* tensors : {&all.model, &all.optimizer, &all.ema, &all.scales}) {
    *tensors = ranks_.share(*tensors);
  }
  if (all.fields.contains("full_precision")) {
    to_full_precision();
    resumed.full_precision = true;
  }
  load(all);
  use_new_rates(all.fields, resumed.rate_scale);
  for (const auto& phase : parts_.phases) {
    if (phase->schedule) {
      phase->schedule->set_scale(resumed.rate_scale);
    }
    phase->set_skipped(manifest::count(all.fields, phase->prefix("phase") + "skipped"),
                       resumed.steps);
  }
  if (ranks_.is_root()) {
    manifest::tell_stated(stated_, all.fields, all.path);
    tell_rates(all.fields);
  }
  state = resumed;
  best = ranks_.share(all.best);
  return true;
}

}  // namespace binade::train
