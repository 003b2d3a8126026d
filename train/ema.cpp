#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/train/ema.h>

namespace binade::train {
namespace {

constexpr const char* kUpdates = "ema_updates";

Tensor wide_copy(const Tensor& value) {
  const DType dtype = is_floating(value.dtype()) ? compute_dtype(value.dtype()) : value.dtype();
  Tensor copy = empty(value.sizes(), dtype, value.device());
  copy.copy_(value);
  return copy;
}

}  // namespace

Ema::Ema(nn::Module& model, const EmaOptions& options) : model_(model), decay_(options.decay) {
  check(options.decay >= 0 && options.decay <= 1, "Ema: got decay = ", options.decay,
        ", expected a number in [0, 1]");
  const NoGradGuard guard;
  for (const auto& [name, value] : model.exact_state()) {
    averages_.emplace_back(name, wide_copy(value));
  }
}

void Ema::update() {
  check(!applied_, "Ema: got update() while the averages are applied; end that scope first");
  const NoGradGuard guard;
  const NamedTensors values = model_.exact_state();
  bool same = values.size() == averages_.size();
  for (size_t i = 0; same && i < values.size(); ++i) {
    const Tensor &value = values[i].second, &average = averages_[i].second;
    same = values[i].first == averages_[i].first && value.sizes() == average.sizes() &&
           value.device() == average.device();
  }
  check(same,
        "Ema: the model's tensors are not those it had when the Ema was made; make the Ema "
        "after the model is complete and moved");
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor &value = values[i].second, &average = averages_[i].second;
    average.copy_(is_floating(average.dtype())
                      ? average + (value.to(average.dtype()) - average) * (1 - decay_)
                      : value);
  }
  ++updates_;
}

Ema::Applied::Applied(Ema& ema) : ema_(ema) {
  check(!ema.applied_, "Ema: got applied() while the averages are applied already");
  const NoGradGuard guard;
  for (const auto& [name, value] : ema.model_.exact_state()) {
    own_.emplace_back(name, wide_copy(value));
  }
  ema.model_.load_state(ema.averages_);
  ema.applied_ = true;
  for (const auto& [name, value] : ema.model_.state()) {
    versions_.push_back(value.version());
  }
}

std::string Ema::Applied::changed_tensor() const {
  const NamedTensors now = ema_.model_.state();
  for (size_t i = 0; i < std::min(now.size(), versions_.size()); ++i) {
    if (now[i].second.version() != versions_[i]) {
      return now[i].first;
    }
  }
  return "";
}

Ema::Applied::~Applied() {
  try {
    const std::string changed = changed_tensor();
    ema_.model_.load_state(own_);
    if (!changed.empty()) {
      warn(text("Ema: '", changed,
                "' was changed while the averages were applied, and the change is lost: ",
                "the model has its own values again; train outside of that scope, and call eval() "
                "in it"));
    }
  } catch (const Error& error) {
    warn(text("Ema: the model's own values could not be restored: ", error.what()));
  }
  ema_.applied_ = false;
}

NamedTensors Ema::state() const {
  NamedTensors state = averages_;
  Tensor updates = empty({}, DType::f64);
  updates.fill_(static_cast<double>(updates_));
  state.emplace_back(kUpdates, std::move(updates));
  return state;
}

void Ema::load_state(const NamedTensors& state) {
  check(!applied_, "Ema: got load_state() while the averages are applied; end that scope first");
  std::vector<LoadTarget> targets;
  for (const auto& [name, average] : averages_) {
    targets.push_back({{name}, average.sizes(), is_floating(average.dtype())});
  }
  targets.push_back({{kUpdates}, {}});
  const std::vector<Tensor> sources = match_named("Ema load_state", targets, state);
  const double updates = sources.back().item();
  check(updates >= 0 && updates < 1e15, "Ema load_state: got ", updates,
        " updates, expected a number >= 0; nothing was changed");
  const NoGradGuard guard;
  for (size_t i = 0; i < averages_.size(); ++i) {
    averages_[i].second.copy_(sources[i]);
  }
  updates_ = static_cast<int64_t>(updates);
}

}  // namespace binade::train
