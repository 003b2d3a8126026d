// What the Trainer does on several ranks beside what it does on one.
#include <binade/train/stop_signal.h>
#include <binade/train/trainer_run_internal.h>

namespace binade::train {

void TrainerRun::check_loader(const data::Loader& loader, const char* what,
                              bool equal_shards) const {
  check(loader.batches_per_epoch() >= 0, "trainer: got a ", what,
        " loader of a dataset of unknown length, expected one whose size() is known");
  if (ranks_.alone()) {
    return;
  }
  const data::LoaderOptions& o = loader.options();
  check(o.shard == ranks_.rank() && o.shard_count == ranks_.count(), "trainer: got a ", what,
        " loader of shard ", o.shard, " of ", o.shard_count, " on rank ", ranks_.rank(), " of ",
        ranks_.count(), ", expected the rank's own; set shard and shard_count of its options");
  check(!equal_shards || o.uneven_shards != data::UnevenShards::keep, "trainer: got a ", what,
        " loader with UnevenShards::keep, expected pad or drop, so that every rank takes the same "
        "steps");
  check(!equal_shards || o.bad_file != data::BadFilePolicy::skip, "trainer: got a ", what,
        " loader with BadFilePolicy::skip, whose batches may differ in size between ranks; use "
        "replace or fail");
}

// In the middle of an epoch the position counts batches of all ranks.
void TrainerRun::check_position(const data::Loader& train) {
  const int64_t batch = train.options().batch * ranks_.count();
  check(state_.batch == 0 || global_batch_ == 0 || global_batch_ == batch, "resume: got ",
        ranks_.count(), " ranks with batches of ", train.options().batch, ", but epoch ",
        state_.epoch + 1, " was begun with ", global_batch_,
        " samples per batch of all ranks; choose the batch so that the product is the same");
  global_batch_ = batch;
}

void TrainerRun::make_data_parallel() {
  data_parallel_.reset();
  if (!ranks_.alone()) {
    data_parallel_ = std::make_unique<dist::DistributedDataParallel>(
        *ranks_.group(), parts_.model.parameters(), options_.data_parallel);
  }
}

// Every rank gets the mean of the running statistics, and its share of the sum of losses, so that a
// run which goes on and one that resumes are the same. Moving averages commute with the mean over
// ranks: how often they are averaged makes no difference but in rounding.
void TrainerRun::agree() {
  if (!apart_) {
    return;
  }
  NamedTensors floating;
  for (const auto& entry : parts_.model.named_buffers()) {
    if (is_floating(entry.second.dtype())) {
      floating.push_back(entry);
    }
  }
  ranks_.average(floating);
  state_.loss = RunningLoss(ranks_.sum({state_.loss.total()})[0] / ranks_.count());
  apart_ = false;
}

// Between calls of agree() an estimate from this rank's share.
double TrainerRun::loss_of_all() const { return state_.loss.total() * ranks_.count(); }

bool TrainerRun::asked_to_stop(const StopSignal& signal) {
  if (options_.stop_on_signal) {
    stopped_by_ = static_cast<int>(ranks_.largest(signal.noted()));
  }
  return stopped_by_ != 0;
}

}  // namespace binade::train
