#include <binade/train/loop/monitor_internal.h>
#include <binade/train/loop/named_values_internal.h>

#include <cmath>
#include <string_view>

namespace binade::train {
namespace {

constexpr std::string_view kTrain = "train_", kValidation = "validation_";

std::string name_of(const std::string& key) {
  for (const std::string_view prefix : {kTrain, kValidation}) {
    if (key.starts_with(prefix)) {
      return key.substr(prefix.size());
    }
  }
  return key;
}

// The mode of names that imply one.
Mode known_mode(const std::string& name) {
  for (const char* small : {"loss", "mae", "mse", "rmse", "perplexity", "error"}) {
    if (name == small || name.ends_with(std::string("_") + small)) {
      return Mode::min;
    }
  }
  for (const char* large : {"accuracy", "f1", "auroc", "r2", "precision", "recall"}) {
    if (name == large || name.ends_with(std::string("_") + large)) {
      return Mode::max;
    }
  }
  const bool top_k = name.size() > 3 && name.starts_with("top") &&
                     name.find_first_not_of("0123456789", 3) == std::string::npos;
  return top_k ? Mode::max : Mode::automatic;
}

}  // namespace

Monitor::Monitor(const TrainerOptions& options, const RunParts& parts)
    : key_(options.monitor.empty() ? "validation_loss" : options.monitor),
      given_(!options.monitor.empty()),
      validation_logs_(!options.validation_step && parts.is_single()) {
  check(key_.starts_with(kTrain) || key_.starts_with(kValidation), "trainer: got monitor '", key_,
        "', expected a key of metrics.jsonl that begins with train_ or validation_: "
        "validation_loss, validation_accuracy");
  const Mode known = known_mode(name_of(key_));
  const Mode mode = options.mode == Mode::automatic ? known : options.mode;
  check(known == Mode::automatic || mode == known, "trainer: got monitor '", key_,
        "' with Mode::", mode == Mode::max ? "max" : "min", ", but ",
        known == Mode::max ? "larger" : "smaller",
        " values of it are better; leave `mode` out, or log the value under another name");
  check(mode != Mode::automatic, "trainer: got monitor '", key_,
        "' without a mode, expected Mode::min if smaller values of it are better, or Mode::max");
  max_ = mode == Mode::max;
  check(!parts.plateau || parts.plateau->larger_is_better() == max_, "trainer: the plateau takes ",
        max_ ? "smaller" : "larger", " values for better, but of monitor '", key_, "' ",
        max_ ? "larger" : "smaller",
        " ones are; set larger_is_better of ReduceLROnPlateauOptions, or Mode");
}

void Monitor::begin(bool validates, const NamedValues* known) {
  const bool of_validation = key_.starts_with(kValidation);
  on_ = given_ || validates;
  if (!on_) {
    return;
  }
  check(!of_validation || validates, "trainer: got monitor '", key_,
        "' and no validation loader, expected one for fit(), or a monitor that begins with train_");
  const bool named = known && (of_validation || (validation_logs_ && key_ != "train_loss"));
  if (!named) {
    return;
  }
  const std::string key = std::string(kValidation) + name_of(key_);
  if (!find_value(*known, key)) {
    refuse_monitor(key_, *known);
  }
}

bool Monitor::is_better(double value, double best) const {
  return !std::isnan(value) && (std::isnan(best) || (max_ ? value > best : value < best));
}

void refuse_monitor(const std::string& key, const NamedValues& known) {
  fail("trainer: got monitor '", key,
       "', expected one of the values there are: ", list_value_names(known));
}

}  // namespace binade::train
