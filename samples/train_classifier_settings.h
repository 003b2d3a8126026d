// The settings with which a run of train_classifier was started, as its checkpoints keep them.
#pragma once
#include "train_classifier_flags.h"

namespace classifier {

// The settings that a resumed run must share with the run before, including the data's statistics.
// The number of ranks may differ if the batch of all ranks is the same.
inline std::map<std::string, std::string> settings_of(const Flags& f,
                                                      const train::ClassifierData& data,
                                                      const dist::World& world) {
  std::map<std::string, std::string> out{
      {"model", f.model},           {"policy", to_string(precision_of(f))},
      {"optimizer", f.optimizer},   {"schedule", f.schedule},
      {"loss-scale", f.loss_scale}, {"augment", train::to_string(data.augment)}};
  if (const auto& rules = precision_of(f).rules) {
    for (const PrecisionRule& rule : rules->list()) {
      out["overrides"] += (out["overrides"].empty() ? "" : "; ") + to_string(rule);
    }
  }
  auto add = [&out](const char* name, double value) { out[name] = text(value); };
  // Adds the setting only if it is not the default, so that runs older than the flag can resume.
  auto add_new = [&](const char* name, double value, double usual) {
    if (value != usual) {
      add(name, value);
    }
  };
  const optim::LossScalerOptions usual;
  add_new("init-scale", f.scaler.init_scale, usual.init_scale);
  add_new("growth-factor", f.scaler.growth_factor, usual.growth_factor);
  add_new("backoff-factor", f.scaler.backoff_factor, usual.backoff_factor);
  add_new("growth-interval", double(f.scaler.growth_interval), double(usual.growth_interval));
  add_new("hysteresis", double(f.scaler.hysteresis), double(usual.hysteresis));
  add("epochs", static_cast<double>(f.epochs)),
      add("batch", static_cast<double>(f.batch * world.size()));
  add("accumulate", static_cast<double>(f.accumulate)), add("seed", static_cast<double>(f.seed));
  add("lr", f.lr), add("weight-decay", f.weight_decay), add("clip", f.clip),
      add("momentum", f.momentum);
  add("validation-split", f.validation_split);
  add("height", data.height), add("width", data.width);
  add("train samples", static_cast<double>(data.train_samples));
  for (size_t c = 0; c < data.mean.size(); ++c) {
    add(("mean " + std::to_string(c)).c_str(), data.mean[c]);
    add(("deviation " + std::to_string(c)).c_str(), data.deviation[c]);
  }
  return out;
}

// Adds settings only if they are not the default, so that runs older than these flags can resume.
inline void add_settings(const train::FormatFlags& formats,
                         std::map<std::string, std::string>& settings) {
  const train::FormatFlags plain;
  for (const train::FormatFlag& flag : train::format_flags()) {
    if (formats.*flag.value != plain.*flag.value) {
      settings[flag.name + 2] = formats.*flag.value;
    }
  }
}

}  // namespace classifier
