#include <binade/core/observe/warning.h>
#include <binade/train/scaler_watch_internal.h>

#include <algorithm>

namespace binade::train {
namespace {

constexpr int64_t kAskEvery = 256;    // steps on a device
constexpr size_t kNamedSamples = 32;  // in an error

}  // namespace

std::string list_of_samples(const std::vector<int64_t>& samples) {
  std::string list;
  for (size_t i = 0; i < std::min(samples.size(), kNamedSamples); ++i) {
    list += text(i == 0 ? "" : ", ", samples[i]);
  }
  return samples.size() > kNamedSamples
             ? text(list, " and ", samples.size() - kNamedSamples, " more")
             : list;
}

std::string ScalerWatch::skipped_words(const RunState& state) const {
  const std::string parameter = scaler_ ? scaler_->last_overflow() : "";
  const size_t dot = parameter.rfind('.');
  return text(phase_.skipped(state.steps), "/", phase_.taken(state.steps),
              parameter.empty() ? "" : text(", last in ", parameter.substr(0, dot)));
}

void ScalerWatch::begin_step(const data::Batch& batch, bool full) {
  if (!scaler_) {
    return;
  }
  samples_.insert(samples_.end(), batch.indices.begin(), batch.indices.end());
  if (full) {
    unasked_.push_back(std::move(samples_));
    samples_.clear();
  }
}

bool ScalerWatch::end_step(int64_t steps) {
  if (!scaler_) {
    return false;
  }
  if (phase_.optimizer->device().is_cpu()) {
    unasked_.clear();  // an error would have come with the step
    return true;
  }
  if (steps % kAskEvery != 0) {
    return false;
  }
  ask(steps);
  return true;
}

void ScalerWatch::name_samples(optim::OverflowAtFloor& error, int64_t newest) const {
  const int64_t since = error.steps_since();
  if (since < static_cast<int64_t>(unasked_.size())) {
    error.add_context(text("(step ", newest - since * phase_.every, ", samples ",
                           list_of_samples(unasked_[unasked_.size() - 1 - size_t(since)]),
                           " of the data set)"));
  }
}

void ScalerWatch::ask(int64_t steps) {
  if (!scaler_) {
    return;
  }
  optim::NamedScalars state;
  try {
    state = scaler_->state_scalars();
  } catch (optim::OverflowAtFloor& error) {
    name_samples(error, steps - 1);
    throw;
  }
  unasked_.clear();
  if (state.at("needs_full_precision") != 0) {  // another line reports that
    return;
  }
  if (!notes_) {
    notes_ = std::make_unique<optim::ScalerNotes>(scaler_->options());
  }
  const optim::ScalerNote note =
      notes_->look(steps, static_cast<int64_t>(state.at("skipped_steps")), state.at("scale"));
  if (note.warning) {
    if (ranks_.is_root()) {
      warn(note.text);
    }
  } else if (!note.text.empty()) {
    display_.note(note.text);
  }
}

bool ScalerWatch::wants_full_precision(int64_t steps) const {
  if (!scaler_ || !scaler_->needs_full_precision()) {
    return false;
  }
  const std::string warning =
      text("loss scale: gradients overflow at the smallest scale, ", scaler_->scale(), " (",
           scaler_->last_overflow(), "): the run goes on in fp32 from step ", steps);
  if (ranks_.is_root()) {
    warn(warning);
  }
  return true;
}

void ScalerWatch::begin_again() {
  samples_.clear();
  unasked_.clear();
  notes_.reset();
}

void ScalerWatch::begin_full_precision() {
  if (scaler_) {
    *scaler_ = optim::LossScaler::fixed(1, optim::AtFloor::error);
  }
  notes_.reset();
}

}  // namespace binade::train
