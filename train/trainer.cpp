#include <binade/train/trainer.h>
#include <binade/train/trainer_run_internal.h>

namespace binade::train {

Trainer::Trainer(const TrainingParts& parts, TrainerOptions options)
    : run_(std::make_unique<TrainerRun>(parts, std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::fit(data::Loader& train, data::Loader* validation) { run_->fit(train, validation); }
Evaluation Trainer::validate(data::Loader& loader) { return run_->validate(loader); }
Evaluation Trainer::test(data::Loader& loader) { return run_->test(loader); }
NamedTensors Trainer::predict(data::Loader& loader) { return run_->predict(loader); }
void Trainer::save_model() { run_->save_model(); }
std::vector<int64_t> Trainer::predict(const Tensor& images) { return run_->predict(images); }

int64_t Trainer::epoch() const { return run_->epoch(); }
int64_t Trainer::steps() const { return run_->steps(); }
int64_t Trainer::rollbacks() const { return run_->rollbacks(); }
bool Trainer::resumed() const { return run_->resumed(); }
int Trainer::stopped_by() const { return run_->stopped_by(); }
const std::string& Trainer::stop_reason() const { return run_->stop_reason(); }
const NamedValues& Trainer::values() const { return run_->values(); }
optim::Optimizer& Trainer::optimizer(size_t phase) const { return run_->optimizer(phase); }
Ema* Trainer::ema() const { return run_->ema(); }
int64_t Trainer::graph_replays() const { return run_->graph_replays(); }
const std::string& Trainer::why_no_graph() const { return run_->why_no_graph(); }

}  // namespace binade::train
