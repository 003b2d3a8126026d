#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/format_histories.h>
#include <binade/train/checkpoint/host_snapshot_internal.h>
#include <binade/train/finders/finder_parts.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace binade::train {
namespace {

// Rows `index` of x along dimension 0, in the memory order of x.
Tensor rows_of(const Tensor& x, const Tensor& index) {
  std::vector<int> order(static_cast<size_t>(x.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&x](int a, int b) { return x.strides()[a] > x.strides()[b]; });
  const auto rows = static_cast<int>(std::find(order.begin(), order.end(), 0) - order.begin());
  Dims forward, back;
  for (const int dim : order) {
    forward.push_back(dim);
  }
  for (int i = 0; i < x.dim(); ++i) {
    back.push_back(std::find(order.begin(), order.end(), i) - order.begin());
  }
  return permute(index_select(permute(x, forward), rows, index), back);
}

}  // namespace

struct StateSnapshot::Kept {
  NamedTensors model, optimizer, scales;
  optim::NamedScalars scalars, scaler;
  Generator random;
  std::vector<bool> modes;
};

StateSnapshot::StateSnapshot(const FinderParts& parts)
    : parts_(parts), kept_(std::make_unique<Kept>()) {
  kept_->model = copies(parts.model.exact_state());
  kept_->scales = nn::format_histories(parts.model);
  kept_->optimizer = copies(parts.optimizer.state_tensors());
  kept_->scalars = parts.optimizer.state_scalars();
  if (parts.scaler) {
    kept_->scaler = parts.scaler->state_scalars();
  }
  kept_->random = generator();
  kept_->modes = parts.model.training_modes();
}

StateSnapshot::~StateSnapshot() {
  try {
    restore();
  } catch (const Error& error) {
    warn(text("finder: the state from before could not be restored: ", error.what()));
  }
}

void StateSnapshot::restore() {
  parts_.optimizer.zero_grad();
  parts_.model.load_state(kept_->model);
  nn::load_format_histories(parts_.model, kept_->scales);
  parts_.optimizer.load_state(kept_->optimizer, kept_->scalars);
  if (parts_.scaler) {
    parts_.scaler->load_state(kept_->scaler);
  }
  generator() = kept_->random;
  parts_.model.set_training_modes(kept_->modes);
}

BatchMaker::BatchMaker(data::Batch samples) : samples_(std::move(samples)) {
  check(samples_.size > 0, "finder: got a batch without samples, expected at least one");
}

BatchMaker BatchMaker::largest(data::Loader& loader, int64_t look) {
  loader.epoch(0);
  data::Batch batch, best;
  double most = -1;
  for (int64_t i = 0; (look == 0 || i < look) && loader.next(batch); ++i) {
    const BatchMaker maker(batch);
    if (maker.bytes_per_sample() > most) {
      most = maker.bytes_per_sample();
      best = batch;
    }
  }
  check(most >= 0, "finder: got a loader without batches, expected at least one");
  return BatchMaker(best);
}

double BatchMaker::bytes_per_sample() const {
  int64_t bytes = 0;
  for (const std::string& name : samples_.names()) {
    bytes += samples_[name].numel() * static_cast<int64_t>(size_of(samples_[name].dtype()));
  }
  return static_cast<double>(bytes) / static_cast<double>(samples_.size);
}

data::Batch BatchMaker::make(int64_t size) const {
  check(size > 0, "finder: got a batch of ", size, " samples, expected at least 1");
  std::vector<double> rows(static_cast<size_t>(size));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<double>(static_cast<int64_t>(i) % samples_.size);
  }
  const NoGradGuard no_grad;
  data::Batch batch = samples_;
  batch.size = size;
  batch.repeated = 0;
  batch.indices.clear();
  for (const std::string& name : samples_.names()) {
    const Tensor& field = samples_[name];
    if (field.dim() > 0 && field.size(0) == samples_.size) {
      batch.set(name, rows_of(field, from_values(rows, {size}, DType::i64, field.device())));
    }
  }
  return batch;
}

double train_step(const FinderParts& parts, const data::Batch& batch) {
  const StepOutput output =
      parts.step ? parts.step(parts.model, batch) : classification_step(parts.model, batch);
  const optim::StepOptions options{.clip_norm = parts.clip_norm};
  if (parts.scaler) {
    parts.scaler->scale(output.loss).backward();
    (void)parts.scaler->step(parts.optimizer, options);
  } else {
    output.loss.backward();
    (void)parts.optimizer.step(options);
  }
  return output.loss.item();
}

}  // namespace binade::train
