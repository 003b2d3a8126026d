#include <binade/core/observe/warning.h>
#include <binade/nn/format_histories.h>
#include <binade/train/model_file.h>
#include <binade/train/precision/overflow_watch_internal.h>

#include <cmath>

namespace binade::train {
namespace {

constexpr uint64_t kMostKept = uint64_t{64} << 20;  // bytes of micro-batches, without a black box
constexpr size_t kMostPending = 256;                // steps on a device

uint64_t bytes_of(const data::Batch& batch) {
  uint64_t bytes = 0;
  for (const std::string& name : batch.names()) {
    const Tensor& field = batch[name];
    bytes += static_cast<uint64_t>(field.numel()) * size_of(field.dtype());
  }
  return bytes;
}

NamedTensors on_host(const NamedTensors& tensors) {
  NamedTensors host;
  for (const auto& [name, tensor] : tensors) {
    host.emplace_back(name, tensor.detach().to(Device{}));
  }
  return host;
}

}  // namespace

OverflowWatch::OverflowWatch(const Phase& phase, nn::Module& model, const TrainerOptions& options,
                             const Ranks& ranks)
    : phase_(phase), model_(model), options_(options), ranks_(ranks) {}

// a step ------------------------------------------------------------------------------------------

void OverflowWatch::begin_step() {
  kept_.clear();
  kept_bytes_ = 0;
  is_whole_ = true;
  gradients_.clear();
  loss_ = 0;
  recorder_.begin();
  stale_.clear();
  if (!on_cpu()) {
    return;
  }
  scale_ = phase_.scaler ? phase_.scaler->scale() : 1;
  for (size_t i = 0; i < phase_.optimizer->group_count(); ++i) {
    for (const Parameter& parameter : phase_.optimizer->parameters(i)) {
      if (parameter.value.requires_grad() && parameter.leaf().has_grad) {
        stale_.push_back(parameter.name);
      }
    }
  }
}

void OverflowWatch::add(const data::Batch& batch, double weight, const Generator& random) {
  if (!on_cpu() || !ranks_.alone() || !is_whole_) {
    return;
  }
  if (kept_.empty()) {  // only now, since phases before this one have changed them
    scales_ = nn::format_histories(model_);
  }
  kept_bytes_ += bytes_of(batch);
  is_whole_ = kept_.empty() ||
              kept_bytes_ <= std::max(kMostKept, static_cast<uint64_t>(options_.black_box.bytes));
  if (is_whole_) {
    kept_.push_back({batch, weight, random});
  } else {
    kept_.clear();
  }
}

void OverflowWatch::add_loss(const Tensor& loss, double weight) {
  if (on_cpu()) {
    loss_ += weight * loss.item();
  }
}

std::unique_ptr<ObserverScope> OverflowWatch::observe_backward() {
  return options_.record_gradients ? std::make_unique<ObserverScope>(recorder_) : nullptr;
}

// The update clears gradients that are not finite, so their hash is noted before. Without a scaler
// the update applies them, so the weights are kept before.
void OverflowWatch::before_update(int64_t step) {
  if (options_.black_box.bytes == 0 || !can_diagnose() ||
      kept_cause_.value_or(OverflowCause::scale_too_high) != OverflowCause::scale_too_high ||
      phase_.optimizer->gradient_summary().non_finite == 0) {
    return;
  }
  gradients_ = state_hash(stored_gradients(phase_.parameters()));
  if (!phase_.scaler) {
    OverflowReport unknown{.scale = scale_};
    unknown.text = "a run without a loss scaler does not look for the cause";
    keep_black_box(unknown, step);
  }
}

// True for the Trainer's own step, all of whose effects are undone.
bool OverflowWatch::repeats_freely() const { return !options_.step && phase_.name.empty(); }

bool OverflowWatch::may_repeat() const {
  const int64_t normal =
      phase_.scaler ? static_cast<int64_t>(
                          std::ceil(std::log2(std::max(phase_.scaler->options().init_scale, 2.0))))
                    : 0;
  return can_diagnose() &&
         (repeats_freely() || !std::isfinite(loss_) || options_.black_box.bytes > 0 ||
          options_.record_gradients || in_a_row_ > normal);
}

StepToDiagnose OverflowWatch::step_to_diagnose() const {
  return {.model = model_,
          .step = phase_.step,
          .parameters = phase_.parameters(),
          .batches = kept_,
          .scale = scale_,
          .stale = stale_,
          .scales = scales_};
}

OverflowReport OverflowWatch::diagnose(int64_t step) {
  OverflowReport report = diagnose_overflow(step_to_diagnose());
  tell(report, step);
  keep_black_box(report, step);
  return report;
}

// A scale that is too high is normal. Every other cause is a mistake that no scale cures, and the
// first skipped step already shows it.
void OverflowWatch::tell(const OverflowReport& report, int64_t step) {
  const bool normal = report.cause == OverflowCause::scale_too_high && phase_.scaler &&
                      phase_.scaler->options().backoff_factor < 1;
  if (!normal && phase_.scaler && told_.insert(report.cause).second) {
    warn(text("loss scale: step ", step, phase_.words(), " was skipped at ", scale_,
              "; cause: ", report.text));
  }
}

void OverflowWatch::note(ScalerRecord record) {
  if (log_ && (phase_.scaler || options_.record_gradients)) {
    log_->add(record);
  }
}

void OverflowWatch::end_step(const optim::StepResult& result, int64_t step) {
  if (!result.known()) {
    if (log_) {
      pending_.push_back({.record = {.step = step, .phase = phase_.name},
                          .numbers = phase_.scaler ? phase_.scaler->device_numbers() : Tensor(),
                          .counts = recorder_.take()});
      if (pending_.size() >= kMostPending) {
        read_device();
      }
    }
    return;
  }
  ScalerRecord record{.step = step,
                      .phase = phase_.name,
                      .scale = scale_,
                      .overflow = result.value() == StepOutcome::overflow,
                      .bad = {},
                      .cause = {},
                      .gradients = {}};
  in_a_row_ = record.overflow ? in_a_row_ + 1 : 0;
  if (options_.record_gradients) {
    record.gradients = read_sizes(recorder_.take(), scale_);
  }
  if (record.overflow) {
    record.bad = phase_.scaler ? phase_.scaler->last_overflow() : "";
    if (may_repeat()) {
      const OverflowReport report = diagnose(step);
      record.cause = to_string(report.cause);
      record.gradients = sizes_at_fitting_scale(report);
    }
  }
  note(std::move(record));
  kept_.clear();
}

std::optional<GradientSizes> OverflowWatch::sizes_at_fitting_scale(const OverflowReport& report) {
  if (!options_.record_gradients || report.fitting_scale <= 0) {
    return std::nullopt;
  }
  recorder_.begin();
  {
    const ObserverScope scope(recorder_);
    (void)run_step(step_to_diagnose(), report.fitting_scale, false);
  }
  return read_sizes(recorder_.take(), report.fitting_scale);
}

std::string OverflowWatch::cause_of_failure(int64_t step) {
  if (!can_diagnose()) {
    return {};
  }
  const OverflowReport report = diagnose_overflow(step_to_diagnose());
  keep_black_box(report, step);
  return report.text;
}

// a device ----------------------------------------------------------------------------------------

void OverflowWatch::read_device() {
  for (Pending& step : pending_) {
    const optim::ScalerReading now =
        step.numbers.defined() ? phase_.scaler->read(step.numbers) : optim::ScalerReading{};
    step.record.scale = device_scale_;
    step.record.overflow = now.skipped_steps > skipped_;
    step.record.bad = step.record.overflow ? now.last_overflow : "";
    step.record.gradients = read_sizes(step.counts, step.record.scale);
    device_scale_ = now.scale;
    skipped_ = now.skipped_steps;
    note(std::move(step.record));
  }
  pending_.clear();
}

void OverflowWatch::begin_again() {
  pending_.clear();
  kept_.clear();
  in_a_row_ = 0;
  begin();
}

void OverflowWatch::begin() {
  if (phase_.scaler) {
    device_scale_ = phase_.scaler->scale();
    skipped_ = phase_.scaler->skipped_steps();
  }
}

// the black box -----------------------------------------------------------------------------------

// The first step that a smaller scale does not cure replaces a step that it cures.
bool OverflowWatch::wants_black_box(OverflowCause cause) const {
  return options_.black_box.bytes > 0 && files_ &&
         (!kept_cause_ || (*kept_cause_ == OverflowCause::scale_too_high && cause != *kept_cause_));
}

void OverflowWatch::keep_black_box(const OverflowReport& report, int64_t step) {
  if (!wants_black_box(report.cause)) {
    return;
  }
  kept_cause_ = report.cause;
  const BlackBoxOptions& o = options_.black_box;
  const std::string path = options_.run + "/blackbox.safetensors";
  const int64_t bytes =
      write_black_box(path,
                      {.step = step,
                       .scale = scale_,
                       .loss = loss_,
                       .precision = model_.precision().value_or(Precision::full()),
                       .modes = model_.training_modes(),
                       .stored = on_host(model_.state()),
                       .exact = on_host(model_.exact_state()),
                       .scales = scales_,
                       .batches = kept_,
                       .stale = stale_,
                       .gradients = gradients_.empty() ? report.gradients : gradients_,
                       .device = to_string(phase_.optimizer->device()),
                       .cause = report.text,
                       .first = report.first ? describe(*report.first) : "",
                       .description = o.description},
                      o.bytes, *files_);
  if (report.cause == OverflowCause::scale_too_high && bytes <= o.bytes) {
    return;  // normal
  }
  warn(bytes <= o.bytes
           ? text("black box: step ", step, phase_.words(), " is kept in ", path,
                  "; see binade blackbox")
           : text("black box: step ", step, phase_.words(), " needs ", bytes,
                  " bytes, more than the ", o.bytes, " of TrainerOptions::black_box; not kept"));
}

}  // namespace binade::train
