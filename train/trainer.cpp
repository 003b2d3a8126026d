#include <binade/train/trainer.h>
#include <binade/train/trainer_run_internal.h>

namespace binade::train {

Trainer::Trainer(const TrainingParts& parts, TrainerOptions options)
    : run_(std::make_unique<TrainerRun>(parts, std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::fit(data::Loader& train, data::Loader* validation) { run_->fit(train, validation); }
Evaluation Trainer::validate(data::Loader& loader) { return run_->validate(loader); }
Evaluation Trainer::test(data::Loader& loader) { return run_->test(loader); }
void Trainer::save_model() { run_->save_model(); }
std::vector<int64_t> Trainer::predict(const Tensor& images) { return run_->predict(images); }

int64_t Trainer::epoch() const { return run_->epoch(); }
int64_t Trainer::steps() const { return run_->steps(); }
int64_t Trainer::rollbacks() const { return run_->rollbacks(); }
bool Trainer::resumed() const { return run_->resumed(); }
int Trainer::stopped_by() const { return run_->stopped_by(); }
int64_t Trainer::graph_replays() const { return run_->graph_replays(); }
const std::string& Trainer::why_no_graph() const { return run_->why_no_graph(); }

}  // namespace binade::train
