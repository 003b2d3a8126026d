// What the Trainer keeps in a checkpoint, and how it comes back.
#include <binade/core/create.h>
#include <binade/train/checkpoint_store.h>
#include <binade/train/model_file.h>
#include <binade/train/trainer.h>

#include <charconv>
#include <cstdio>

namespace binade::train {
namespace {

using Fields = std::map<std::string, std::string>;

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

}  // namespace

Fields Trainer::fields() const {
  Fields fields;
  fields["epoch"] = shortest(state_.epoch);
  fields["batch"] = shortest(state_.batch);
  fields["steps"] = shortest(state_.steps);
  fields["skipped"] = shortest(skipped());
  fields["loss_sum"] = shortest(state_.loss.total());
  fields["samples"] = shortest(state_.samples);
  fields["best_loss"] = shortest(state_.best_loss);
  fields["best_epoch"] = shortest(state_.best_epoch);
  fields["bad_epochs"] = shortest(state_.bad_epochs);
  fields["finished"] = shortest(static_cast<int>(state_.finished));
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
  if (full_precision_) {
    fields["full_precision"] = "1";
  }
  for (const auto& [name, value] : options_.settings) {
    fields["setting." + name] = value;
  }
  return fields;
}

void Trainer::read_fields(const Fields& fields) {
  state_.epoch = number<int64_t>(fields, "epoch");
  state_.batch = number<int64_t>(fields, "batch");
  state_.steps = number<int64_t>(fields, "steps");
  applied_before_ =
      parts_.optimizer.step_count() - state_.steps + number<int64_t>(fields, "skipped");
  state_.loss = RunningLoss(number<double>(fields, "loss_sum"));
  state_.samples = number<int64_t>(fields, "samples");
  state_.best_loss = number<double>(fields, "best_loss");
  state_.best_epoch = number<int64_t>(fields, "best_epoch");
  state_.bad_epochs = number<int64_t>(fields, "bad_epochs");
  state_.finished = number<int>(fields, "finished") != 0;
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

std::vector<CheckpointFile> Trainer::files(const NamedTensors& model,
                                           const NamedTensors& optimizer) const {
  return {
      {kModelFile, tensor_bytes(model), [&model](OutputFile& file) { write_tensors(file, model); }},
      {kOptimizerFile, tensor_bytes(optimizer),
       [&optimizer](OutputFile& file) { write_tensors(file, optimizer); }}};
}

void Trainer::save() {
  if (!store_) {
    return;
  }
  const NamedTensors model = parts_.model.state(), optimizer = parts_.optimizer.state_tensors();
  store_->save(state_.steps, files(model, optimizer), fields());
}

void Trainer::resume() {
  const std::optional<Checkpoint> found = store_->newest_verified();
  for (const std::string& warning : store_->take_warnings()) {
    std::fprintf(stderr, "binade: warning: %s\n", warning.c_str());
  }
  if (!found) {
    return;
  }
  check_settings(*found, options_.settings);
  // Loads that can fail come before anything changes but the tensors that they set all or nothing.
  const NamedTensors model = load_tensors(found->file(kModelFile));
  const NamedTensors optimizer = load_tensors(found->file(kOptimizerFile));
  if (found->fields.contains("full_precision")) {
    go_on_in_full_precision();
  }
  parts_.model.load_state(model);
  parts_.optimizer.load_state(optimizer, scalars_of(found->fields, "optimizer."));
  read_fields(found->fields);
  if (state_.best_epoch >= 0) {
    const std::optional<Checkpoint> best = store_->best_verified();
    check(best.has_value(), "resume: got no readable ", store_->path(),
          "/best, which holds the best weights so far; train into another run directory");
    best_ = load_tensors(best->file(kModelFile));
  }
  resumed_ = true;
}

}  // namespace binade::train
