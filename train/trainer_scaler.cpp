// What the Trainer makes of the loss scaler: words about skipped steps, which samples an overflow
// at the floor met, and going on in full precision. On the CPU the scaler is asked at every step;
// on a device that is a wait, so only now and then, at steps that do not depend on the clock.
#include <binade/core/observe/warning.h>
#include <binade/train/trainer_run_internal.h>

#include <algorithm>
#include <cstdio>

namespace binade::train {
namespace {

constexpr int64_t kAskEvery = 256;    // steps on a device
constexpr size_t kNamedSamples = 32;  // in an error

std::string list_of(const std::vector<int64_t>& samples) {
  std::string list;
  for (size_t i = 0; i < std::min(samples.size(), kNamedSamples); ++i) {
    list += text(i == 0 ? "" : ", ", samples[i]);
  }
  return samples.size() > kNamedSamples
             ? text(list, " and ", samples.size() - kNamedSamples, " more")
             : list;
}

}  // namespace

int64_t TrainerRun::skipped() const {
  return state_.steps - (parts_.optimizer.step_count() - applied_before_);
}

std::string TrainerRun::skipped_words() const {
  const std::string parameter = parts_.scaler ? parts_.scaler->last_overflow() : "";
  const size_t dot = parameter.rfind('.');
  return text(skipped(), "/", state_.steps,
              parameter.empty() ? "" : text(", last in ", parameter.substr(0, dot)));
}

void TrainerRun::begin_step(const data::Batch& batch) {
  if (!parts_.scaler) {
    return;
  }
  samples_.insert(samples_.end(), batch.indices.begin(), batch.indices.end());
  if (window_.full()) {
    unasked_.push_back(std::move(samples_));
    samples_.clear();
  }
}

void TrainerRun::end_step() {
  if (!parts_.scaler) {
    return;
  }
  if (parts_.optimizer.device().is_cpu()) {
    unasked_.clear();  // an error would have come with the step
    follow_floor();
  } else if (state_.steps % kAskEvery == 0) {
    check_scaler();
    follow_floor();
  }
}

// `newest`: the step whose samples came last.
void TrainerRun::name_samples(optim::OverflowAtFloor& error, int64_t newest) const {
  const int64_t since = error.steps_since();
  if (since < static_cast<int64_t>(unasked_.size())) {
    error.add_context(text("(step ", newest - since, ", samples ",
                           list_of(unasked_[unasked_.size() - 1 - static_cast<size_t>(since)]),
                           " of the data set)"));
  }
}

void TrainerRun::check_scaler() {
  if (!parts_.scaler) {
    return;
  }
  optim::NamedScalars state;
  try {
    state = parts_.scaler->state_scalars();
  } catch (optim::OverflowAtFloor& error) {
    name_samples(error, state_.steps - 1);
    throw;
  }
  unasked_.clear();
  if (state.at("needs_full_precision") != 0) {  // that is another line
    return;
  }
  if (!notes_) {
    notes_ = std::make_unique<optim::ScalerNotes>(parts_.scaler->options());
  }
  const optim::ScalerNote note = notes_->look(
      state_.steps, static_cast<int64_t>(state.at("skipped_steps")), state.at("scale"));
  if (note.warning) {
    if (ranks_.is_root()) {
      warn(note.text);
    }
  } else if (!note.text.empty() && options_.progress) {
    std::printf("%s%s\n", shows_progress() ? "\r\033[K" : "", note.text.c_str());
    std::fflush(stdout);
  }
}

void TrainerRun::follow_floor() {
  if (parts_.scaler && parts_.scaler->needs_full_precision()) {
    const std::string warning =
        text("loss scale: gradients overflow at the smallest scale, ", parts_.scaler->scale(), " (",
             parts_.scaler->last_overflow(), "): the run goes on in fp32 from step ", state_.steps);
    if (ranks_.is_root()) {
      warn(warning);
    }
    go_on_in_full_precision();
  }
}

void TrainerRun::go_on_in_full_precision() {
  parts_.model.to_full_precision();
  if (data_parallel_) {
    make_data_parallel();
  }
  if (parts_.scaler) {
    *parts_.scaler = optim::LossScaler::fixed(1, optim::AtFloor::error);
  }
  full_precision_ = true;
  notes_.reset();
  if (graph_) {
    make_graph();
  }
}

}  // namespace binade::train
