// A stage and its neighbours on other ranks. Both ends of a link must meet in the same order, but
// with one forward and one backward in turn one end sends forwards where the other sends backwards.
// So a stage takes its next input before it gives a gradient back.
#include <binade/core/create.h>
#include <binade/core/ops.h>
#include <binade/dist/stage_runner_internal.h>

#include <utility>

namespace binade::dist {

// A group of two ranks, the earlier stage first.
class PipelineRank::Link {
 public:
  explicit Link(std::unique_ptr<Communicator> pair) : pair_(std::move(pair)) {}

  void send(const Tensor& x) {
    const Tensor header = zeros({2 + kMaxDims}, DType::i64);
    auto* words = header.data<int64_t>();
    words[0] = static_cast<int64_t>(x.dtype());
    words[1] = x.dim();
    for (int i = 0; i < x.dim(); ++i) {
      words[2 + i] = x.size(i);
    }
    pair_->broadcast(header, pair_->rank());
    pair_->broadcast(x.contiguous(), pair_->rank());
  }

  Tensor receive(Device device) {
    const Tensor header = zeros({2 + kMaxDims}, DType::i64);
    const int root = 1 - pair_->rank();
    pair_->broadcast(header, root);
    const auto* words = header.data<int64_t>();
    Dims sizes;
    for (int64_t i = 0; i < words[1]; ++i) {
      sizes.push_back(words[2 + i]);
    }
    const Tensor x = empty(sizes, static_cast<DType>(words[0]), device);
    pair_->broadcast(x, root);
    return x;
  }

 private:
  std::unique_ptr<Communicator> pair_;
};

PipelineRank::PipelineRank(Communicator& all, int stage, int stages)
    : stage_(stage), stages_(stages) {
  const Tensor mine = from_values({static_cast<double>(stage), static_cast<double>(stages)}, {2},
                                  DType::i64),
               everyone = all.all_gather(mine);
  std::vector<int> ranks(static_cast<size_t>(std::max(stages, 1)));
  for (int rank = 0; rank < all.size(); ++rank) {
    const int64_t *said = everyone.data<int64_t>() + 2 * rank, own = said[0];
    check(said[1] == stages && own >= 0 && own < stages, "pipeline: rank ", rank, " is stage ", own,
          " of ", said[1], ", expected 0 to ", stages - 1, " of ", stages);
    ++ranks[static_cast<size_t>(own)];
  }
  for (int s = 0; s < stages; ++s) {
    check(ranks[static_cast<size_t>(s)] * stages == all.size(), "pipeline: stage ", s, " has ",
          ranks[static_cast<size_t>(s)], " of ", all.size(), " ranks, expected ",
          all.size() / stages, ", as many as each other of ", stages);
  }
  replicas_ = all.split(stage);
  for (int s = 0; s + 1 < stages; ++s) {
    const bool takes_part = stage == s || stage == s + 1;
    auto pair = all.split(takes_part ? replicas_->rank() : -1, stage);
    if (pair) {
      (stage == s ? after_ : before_) = std::make_unique<Link>(std::move(pair));
    }
  }
}

PipelineRank::~PipelineRank() = default;

void PipelineRank::set_stage(PipelineStage stage, const PipelineOptions& options) {
  options_ = options;
  check(options.micro_batches >= 1, "pipeline: got ", options.micro_batches,
        " micro-batches, expected one or more");
  runner_ = std::make_unique<StageRunner>(std::move(stage), stage_, options.micro_batches);
}

Tensor PipelineRank::input(int m, const Tensor& x) {
  if (before_) {
    return before_->receive(runner_->device());
  }
  const MicroBatch part = micro_batch(x, m, options_);
  return slice(x, 0, part.begin, part.end);
}

double PipelineRank::step(const Tensor& x, const Tensor& target, const PipelineLoss& loss,
                          const BackwardOptions& options) {
  check(runner_ != nullptr, "pipeline: step() before set_stage()");
  runner_->clear();
  double total = 0;
  const auto steps = pipeline_steps(options_.schedule, stage_, stages_, options_.micro_batches);
  int inputs = 0;  // taken so far
  Tensor early;    // an input that was taken before its turn
  for (const PipelineStep& step : steps) {
    const int m = step.micro_batch;
    if (step.is_forward) {
      const Tensor in = early.defined() ? std::exchange(early, {}) : input(inputs++, x);
      if (after_) {
        after_->send(runner_->forward(m, in));
      } else {
        const MicroBatch part = micro_batch(target, m, options_);
        total += runner_->forward_loss(m, in, slice(target, 0, part.begin, part.end), loss,
                                       part.weight());
      }
      continue;
    }
    const Tensor dy = after_ ? after_->receive(runner_->device()) : Tensor();
    const Tensor dx = runner_->backward(m, dy, options);
    if (before_) {
      if (inputs < options_.micro_batches) {
        early = input(inputs++, x);
      }
      before_->send(dx);
    }
  }
  return total;
}

int PipelineRank::most_held() const { return runner_->most_held(); }

}  // namespace binade::dist
