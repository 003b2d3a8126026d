#include <binade/train/loop/callbacks.h>
#include <binade/train/loop/named_values_internal.h>

namespace binade::train {

const char* to_string(Event event) {
  switch (event) {
    case Event::train_start: return "train_start";
    case Event::train_end: return "train_end";
    case Event::epoch_start: return "epoch_start";
    case Event::epoch_end: return "epoch_end";
    case Event::step: return "step";
    case Event::validation: return "validation";
    case Event::checkpoint: return "checkpoint";
    case Event::exception: return "exception";
  }
  return "?";
}

bool RunView::has(const std::string& key) const { return find_value(values, key) != nullptr; }

double RunView::value(const std::string& key) const { return value_of("run", values, key); }

void RunView::stop(const std::string& reason) const {
  if (stop_reason->empty()) {
    *stop_reason = reason.empty() ? "a callback asked for it" : reason;
  }
}

}  // namespace binade::train
