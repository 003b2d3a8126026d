// What a resumed run must share with the one before, and what may change.
#include <binade/core/observe/warning.h>
#include <binade/train/run_checkpoints_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::train {
namespace {

std::string names_of(const RunParts& parts) {
  std::string names;
  for (const auto& phase : parts.phases) {
    names += (names.empty() ? "" : ", ") + phase->name;
  }
  return parts.is_single() && names.empty() ? "none" : names;
}

// The name of a phase's setting: "lr", or "PHASE.lr" where there are several.
std::string setting_name(const Phase& phase, const char* name) {
  return phase.name.empty() ? name : phase.name + "." + name;
}

// One number per group: "0.1, 0.01".
std::string per_group(const optim::Optimizer& optimizer, const auto& number) {
  std::string all;
  for (size_t i = 0; i < optimizer.group_count(); ++i) {
    all += (i > 0 ? ", " : "") + manifest::shortest(number(i));
  }
  return all;
}

const char* name_of(LowUpdates how) {
  return how == LowUpdates::nearest      ? "nearest"
         : how == LowUpdates::stochastic ? "stochastic"
                                         : "compensated";
}

}  // namespace

// What a resumed run must share with the one before, besides what the program names; its own
// settings of the same names count instead. An optimizer that has made steps already does not tell
// which rates it began with.
void RunCheckpoints::add_settings() {
  settings_.emplace("phases", names_of(parts_));
  settings_.emplace("ema", parts_.ema ? text("decay ", parts_.ema->decay()) : "none");
  settings_.emplace("clip", options_.clip_norm ? manifest::shortest(*options_.clip_norm) : "none");
  settings_.emplace("low-updates", name_of(options_.low_updates));
  for (const auto& phase : parts_.phases) {
    const optim::Optimizer& optimizer = *phase->optimizer;
    std::vector<Rates>& first = first_rates_.emplace_back();
    settings_.emplace(setting_name(*phase, "weight-decay"),
                      per_group(optimizer, [&](size_t i) { return optimizer.weight_decay(i); }));
    if (optimizer.step_count() > 0) {
      continue;
    }
    for (size_t i = 0; i < optimizer.group_count(); ++i) {
      first.push_back({phase->schedule ? phase->schedule->base_lr(i) : optimizer.lr(i),
                       optimizer.has_momentum() ? optimizer.momentum(i) : 0});
    }
    settings_.emplace(setting_name(*phase, "lr"),
                      per_group(optimizer, [&](size_t i) { return first[i].lr; }));
    if (optimizer.has_momentum() && !(phase->schedule && phase->schedule->drives_momentum())) {
      settings_.emplace(setting_name(*phase, "momentum"),
                        per_group(optimizer, [&](size_t i) { return first[i].momentum; }));
    }
  }
  stated_ = {{"epochs", options_.epochs ? manifest::shortest(*options_.epochs) : "not given"},
             {"max_steps", manifest::shortest(options_.max_steps)},
             {"max_time", manifest::shortest(options_.max_time)},
             {"patience", manifest::shortest(options_.patience)}};
  std::erase_if(stated_, [this](const auto& entry) { return settings_.contains(entry.first); });
}

// A run that is forced to go on with other rates takes them instead of the checkpoint's.
void RunCheckpoints::use_new_rates(const RunFields& fields, double scale) {
  for (size_t p = 0; p < parts_.phases.size(); ++p) {
    const Phase& phase = *parts_.phases[p];
    const bool lr = manifest::has_other_setting(fields, setting_name(phase, "lr"), settings_),
               momentum =
                   manifest::has_other_setting(fields, setting_name(phase, "momentum"), settings_);
    for (size_t i = 0; i < first_rates_[p].size(); ++i) {
      if (lr && !phase.schedule) {
        phase.optimizer->set_lr(i, first_rates_[p][i].lr * scale);
      }
      if (momentum && phase.optimizer->has_momentum()) {
        phase.optimizer->set_momentum(i, first_rates_[p][i].momentum);
      }
    }
  }
}

// Says so if a schedule gives the next step another rate than that of the checkpoint: its length or
// its form has changed.
void RunCheckpoints::tell_rates(const RunFields& fields) const {
  constexpr double kSame = 1e-5;  // on a device rates are rounded
  for (const auto& phase : parts_.phases) {
    if (!phase->schedule || parts_.plateau ||
        manifest::has_other_setting(fields, setting_name(*phase, "lr"), settings_)) {
      continue;
    }
    const int64_t step = manifest::count(fields, phase->prefix("schedule") + "step");
    const double now = phase->schedule->rate(step),
                 before = manifest::real(fields, phase->prefix("optimizer") + "lr.0");
    if (std::abs(now - before) > kSame * std::max(std::abs(now), std::abs(before))) {
      warn(text("resume: the schedule", phase->words(), " gives step ", step + 1,
                " the learning rate ", now, ", and gave it ", before,
                " before: it has another length or form now"));
    }
  }
}

}  // namespace binade::train
