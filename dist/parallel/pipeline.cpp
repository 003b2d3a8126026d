// Stages in one process: each has its list of steps, and runs the next one when its inputs are
// ready.
#include <binade/core/ops.h>
#include <binade/dist/parallel/stage_runner_internal.h>

#include <algorithm>

namespace binade::dist {

std::vector<PipelineStep> pipeline_steps(PipelineSchedule schedule, int stage, int stages,
                                         int micro_batches) {
  check(stages >= 1 && stage >= 0 && stage < stages && micro_batches >= 1, "pipeline: got stage ",
        stage, " of ", stages, " and ", micro_batches,
        " micro-batches, expected a stage of 0 .. stages - 1 and one micro-batch or more");
  const int ahead =
      schedule == PipelineSchedule::gpipe ? micro_batches : std::min(micro_batches, stages - stage);
  std::vector<PipelineStep> steps;
  for (int m = 0; m < micro_batches + ahead; ++m) {
    if (m >= ahead) {
      steps.push_back({false, m - ahead});
    }
    if (m < micro_batches) {
      steps.push_back({true, m});
    }
  }
  return steps;
}

Pipeline::Pipeline(std::vector<PipelineStage> stages, const PipelineOptions& options)
    : stages_(std::move(stages)), options_(options) {
  check(!stages_.empty() && options.micro_batches >= 1, "pipeline: got ", stages_.size(),
        " stages and ", options.micro_batches, " micro-batches, expected one or more");
  for (size_t s = 0; s < stages_.size(); ++s) {
    runners_.push_back(
        std::make_unique<StageRunner>(stages_[s], static_cast<int>(s), options.micro_batches));
  }
}

Pipeline::~Pipeline() = default;

double Pipeline::step(const Tensor& x, const Tensor& target, const PipelineLoss& loss,
                      const BackwardOptions& options) {
  const size_t stages = stages_.size(), last = stages - 1;
  const auto micro = static_cast<size_t>(options_.micro_batches);
  // Tensors between stages: outputs[s][m] goes to stage s + 1, gradients[s][m] back to stage s.
  std::vector<std::vector<Tensor>> outputs(stages, std::vector<Tensor>(micro)), gradients = outputs;
  std::vector<std::vector<PipelineStep>> steps;
  for (size_t s = 0; s < stages; ++s) {
    runners_[s]->clear();
    steps.push_back(pipeline_steps(options_.schedule, static_cast<int>(s), static_cast<int>(stages),
                                   options_.micro_batches));
  }
  double total = 0;
  const auto run = [&](size_t s, const PipelineStep& step) {
    const auto m = static_cast<size_t>(step.micro_batch);
    StageRunner& runner = *runners_[s];
    if (!step.is_forward) {
      const Tensor dx = runner.backward(
          step.micro_batch, s == last ? Tensor() : std::exchange(gradients[s][m], {}), options);
      if (s > 0) {
        gradients[s - 1][m] = dx.to(stages_[s - 1].device);
      }
      return;
    }
    const MicroBatch part = micro_batch(x, step.micro_batch, options_);
    const Tensor in =
        s == 0 ? slice(x, 0, part.begin, part.end) : std::exchange(outputs[s - 1][m], {});
    if (s == last) {
      total += runner.forward_loss(step.micro_batch, in, slice(target, 0, part.begin, part.end),
                                   loss, part.weight());
    } else {
      outputs[s][m] = runner.forward(step.micro_batch, in).to(stages_[s + 1].device);
    }
  };
  const auto is_ready = [&](size_t s, const PipelineStep& step) {
    const auto m = static_cast<size_t>(step.micro_batch);
    return step.is_forward ? s == 0 || outputs[s - 1][m].defined()
                           : s == last || gradients[s][m].defined();
  };
  std::vector<size_t> next(stages);
  for (size_t left = 2 * stages * micro; left > 0;) {
    for (size_t s = 0; s < stages; ++s) {
      if (next[s] < steps[s].size() && is_ready(s, steps[s][next[s]])) {
        run(s, steps[s][next[s]++]);
        --left;
      }
    }
  }
  return total;
}

Tensor Pipeline::forward(const Tensor& x) const {
  Tensor y = x;
  for (const PipelineStage& stage : stages_) {
    y = stage.forward(y.to(stage.device));
  }
  return y;
}

int Pipeline::most_held(int stage) const {
  return runners_.at(static_cast<size_t>(stage))->most_held();
}

}  // namespace binade::dist
