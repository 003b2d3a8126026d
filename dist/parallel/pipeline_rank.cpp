// A stage and its neighbours on other ranks. Both ends of a link must make their transfers in the
// same order, but with one forward and one backward in turn one end sends forwards where the other
// sends backwards. So a stage receives its next input before it sends a gradient back.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/share.h>
#include <binade/dist/parallel/stage_runner_internal.h>

#include <algorithm>
#include <utility>

namespace binade::dist {
namespace {

// The rows of a micro-batch that rank `before` of one stage and rank `after` of the next both have.
// The unit is the micro-batch divided by the product of the two numbers of ranks.
struct PipelineMeeting {
  int before, after;
  int64_t begin, end;
  int round;  // a rank has at most one meeting per round
};

// All meetings in the order of the rows; both ends use this order.
std::vector<PipelineMeeting> meetings(int64_t ranks_before, int64_t ranks_after) {
  std::vector<PipelineMeeting> all;
  std::vector<int> next_before(static_cast<size_t>(ranks_before)),
      next_after(static_cast<size_t>(ranks_after));
  for (int64_t at = 0; at < ranks_before * ranks_after; at = all.back().end) {
    const int64_t before = at / ranks_after, after = at / ranks_before;
    const int64_t end = std::min((before + 1) * ranks_after, (after + 1) * ranks_before);
    int &first = next_before[static_cast<size_t>(before)],
        &second = next_after[static_cast<size_t>(after)];
    const int round = std::max(first, second);
    first = second = round + 1;
    all.push_back({static_cast<int>(before), static_cast<int>(after), at, end, round});
  }
  return all;
}

}  // namespace

// The ranks of a neighbouring stage that have rows of this rank's micro-batches.
class PipelineRank::Link {
 public:
  // This rank is one of `ranks`; its neighbours are `others`.
  Link(int ranks, int others) : ranks_(ranks), others_(others) {}

  // Adds a neighbour with rows [begin, end) of this rank's rows / others. Call it in row order.
  void add(std::unique_ptr<Communicator> pair, int64_t begin, int64_t end) {
    parts_.push_back({std::move(pair), begin, end});
  }

  void send(const Tensor& x) {
    const int64_t rows = x.size(0);
    check(rows * ranks_ % others_ == 0, "pipeline: got micro-batches of ", rows,
          " rows on each of ", ranks_, " ranks, which the ", others_,
          " ranks of the neighbouring stage cannot share; choose a batch that all can divide");
    for (const Part& part : parts_) {
      send_to(*part.pair, slice(x, 0, rows * part.begin / others_, rows * part.end / others_));
    }
  }

  // Gradients are those of the mean over the replicas, so they are rescaled if the two stages have
  // different numbers of replicas.
  void send_gradient(const Tensor& dx) {
    send(ranks_ == others_ ? dx : mul(dx, static_cast<double>(others_) / ranks_));
  }

  Tensor receive(Device device) {
    std::vector<Tensor> rows;
    for (const Part& part : parts_) {
      rows.push_back(receive_from(*part.pair, device));
    }
    return rows.size() == 1 ? rows[0] : cat(rows);
  }

 private:
  struct Part {
    std::unique_ptr<Communicator> pair;  // the earlier stage first
    int64_t begin, end;
  };

  static void send_to(Communicator& pair, const Tensor& x) {
    pair.broadcast(broadcast_kind(pair, x.contiguous(), x.device(), pair.rank()), pair.rank());
  }

  static Tensor receive_from(Communicator& pair, Device device) {
    const int root = 1 - pair.rank();
    const Tensor x = broadcast_kind(pair, {}, device, root);
    pair.broadcast(x, root);
    return x;
  }

  int ranks_, others_;
  std::vector<Part> parts_;
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
    check(ranks[static_cast<size_t>(s)] > 0, "pipeline: stage ", s, " of ", stages,
          " has no rank, expected one or more of ", all.size());
  }
  replicas_ = all.split(stage);
  for (int s = 0; s + 1 < stages; ++s) {
    connect(all, s, ranks[static_cast<size_t>(s)], ranks[static_cast<size_t>(s) + 1]);
  }
}

// Creates a group for each pair of ranks with rows in common; all ranks call it together.
void PipelineRank::connect(Communicator& all, int earlier, int ranks_before, int ranks_after) {
  const bool is_earlier = stage_ == earlier, is_later = stage_ == earlier + 1;
  std::unique_ptr<Link>& link = is_earlier ? after_ : before_;
  if (is_earlier || is_later) {
    link = is_earlier ? std::make_unique<Link>(ranks_before, ranks_after)
                      : std::make_unique<Link>(ranks_after, ranks_before);
  }
  const std::vector<PipelineMeeting> pairs = meetings(ranks_before, ranks_after);
  const int rank = replicas_->rank();
  for (int round = 0, left = static_cast<int>(pairs.size()); left > 0; ++round) {
    int color = -1;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const PipelineMeeting& pair = pairs[i];
      const bool own = (is_earlier && pair.before == rank) || (is_later && pair.after == rank);
      if (pair.round == round) {
        --left;
        color = own ? static_cast<int>(i) : color;
      }
    }
    if (auto group = all.split(color, stage_)) {
      const PipelineMeeting& pair = pairs[static_cast<size_t>(color)];
      const int64_t origin =
          is_earlier ? int64_t(rank) * ranks_after : int64_t(rank) * ranks_before;
      link->add(std::move(group), pair.begin - origin, pair.end - origin);
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
  int inputs = 0;  // received so far
  Tensor early;    // an input received before its turn
  for (const PipelineStep& step : steps) {
    const int m = step.micro_batch;
    if (step.is_forward) {
      const Tensor in = early.defined() ? std::exchange(early, {}) : input(inputs++, x);
      if (after_) {
        after_->send(runner_->forward(m, in));
      } else {
        const MicroBatch part = micro_batch(target, m, options_);
        check(in.size(0) == part.end - part.begin, "pipeline: got ", in.size(0),
              " rows of micro-batch ", m, " from the stage before and ", part.end - part.begin,
              " targets; PipelineRank::rows() says which rows of a batch a rank has");
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
      before_->send_gradient(dx);
    }
  }
  return total;
}

std::vector<int64_t> PipelineRank::rows(int64_t batch) const {
  const int64_t parts = options_.micro_batches, ranks = replicas_->size(),
                own = batch / parts / ranks;
  check(runner_ != nullptr && batch >= 1 && batch == own * ranks * parts,
        "pipeline: got a batch of ", batch, " samples, expected a multiple of ", parts,
        " micro-batches x ", ranks, " ranks of stage ", stage_, ", after set_stage()");
  std::vector<int64_t> rows;
  for (int64_t m = 0; m < parts; ++m) {
    for (int64_t i = 0; i < own; ++i) {
      rows.push_back((m * ranks + replicas_->rank()) * own + i);
    }
  }
  return rows;
}

int PipelineRank::most_held() const { return runner_->most_held(); }

}  // namespace binade::dist
