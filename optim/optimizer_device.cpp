// A step on a device: launches only, no waiting.
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/rank_group.h>
#include <binade/kernels/optimizer/gradient_values.h>
#include <binade/kernels/optimizer/step_words.h>
#include <binade/optim/device_words.h>
#include <binade/optim/gradients_internal.h>
#include <binade/optim/optimizer.h>

namespace binade::optim {

using kernels::OptimizerWords;
using kernels::StretchWords;

void Optimizer::create_device_state() {
  size_t items = 0;
  std::vector<double> rates;
  for (const Group& group : groups_) {
    items += group.items.size();
    rates.insert(rates.end(), {group.lr, group.momentum});
  }
  OptimizerWords words;
  words.norm = -1;
  const auto groups = static_cast<int64_t>(groups_.size());
  device_ =
      DeviceState{.words = make_words(words, device()),
                  .rates = from_values(rates, {groups, 2}, DType::f64, device()),
                  .counters = zeros({static_cast<int64_t>(items)}, DType::f64, device()),
                  .prepared = empty({static_cast<int64_t>(items) * kernels::kWordsOf<StretchWords>},
                                    DType::f64, device())};
}

bool Optimizer::has_gradient() const {
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      if (leaf_with_gradient(item.parameter)) {
        return true;
      }
    }
  }
  return false;
}

StepResult Optimizer::step_on_device(const StepOptions& options,
                                     const std::shared_ptr<DeviceScaler>& scaler) {
  check_options(options);
  if (options.accumulating) {
    return StepOutcome::accumulating;
  }
  arena_->follow_values();
  const std::vector<GradientRange> all = gradients();
  check(!all.empty() || has_gradient(),  // of which this rank owns nothing
        "step: no parameter has a gradient; call backward before step");
  const bool measured = scaler || options.clip_norm || options.check_finite;
  if (measured) {
    measure(all, scaler.get());
  }
  if (scaler && scaler->rule.at_floor == kernels::AtFloor::clip) {
    kernels::step_replaces(
        {.rule = scaler->rule, .scaler = scaler->words, .words = device_->words});
    const Tensor replaces =
        word_at(device_->words, offsetof(OptimizerWords, replaces) / sizeof(double));
    for (const GradientRange& range : all) {
      kernels::replace_non_finite({.grad = range.grad, .when = replaces});
    }
    measure(all, scaler.get());
  }
  Tensor outcome = decide(options, scaler.get());
  apply_on_device();
  arena_->gather_values();
  zero_grad();
  return {std::move(outcome), scaler};
}

void Optimizer::measure(const std::vector<GradientRange>& all, DeviceScaler* scaler) {
  for (const GradientRange& range : all) {
    kernels::step_stats(
        {.grad = range.grad,
         .scale = range.scale,
         .tag = range.tag,
         .position = scaler ? scaler->position(arena_, range.segment, range.offset) : 0,
         .first = &range == all.data(),
         .words = device_->words});
  }
  if (arena_->sharding() == Sharding::gradients) {
    join_measurements(!all.empty());
  }
}

// Each rank has measured its shard (or has nothing in it): the words become those of a measurement
// of all, in the order of the ranks. Waits for the device, as the reduction did before.
void Optimizer::join_measurements(bool measured) {
  constexpr int64_t kRow = 5;
  RankGroup& group = *arena_->group();
  auto words = read_words<OptimizerWords>(device_->words);
  const Tensor rows = zeros({group.size() * kRow}, DType::f64);
  if (measured) {
    double* own = rows.data<double>() + group.rank() * kRow;
    own[0] = words.squares, own[1] = words.non_finite, own[2] = words.first_position;
    own[3] = words.scale, own[4] = words.mixed;
  }
  std::vector<int64_t> bounds;
  for (int rank = 0; rank <= group.size(); ++rank) {
    bounds.push_back(rank * kRow);
  }
  group.gather_ranges(rows, bounds);
  kernels::begin_measurement(words);
  bool mixed = false;
  for (const double* row = rows.data<double>(); row < rows.data<double>() + rows.numel();
       row += kRow) {
    mixed |= row[4] != 0;
    if (row[3] != 0) {  // the scale of a rank that has measured something
      kernels::add_measurement(
          {.squares = row[0], .non_finite = row[1], .first_position = row[2], .scale = row[3]},
          words);
    }
  }
  words.mixed = mixed || words.mixed != 0 ? 1 : 0;
  device_->words.copy_(make_words(words, Device{}));
}

// Returns the word of the step's outcome, which no later step writes.
Tensor Optimizer::decide(const StepOptions& options, DeviceScaler* scaler) {
  Tensor outcome = empty({1}, DType::f64, device());
  kernels::StepRequest request{.divisor = options.divisor,
                               .clip_norm = options.clip_norm.value_or(0),
                               .check_finite = options.check_finite,
                               .measured = scaler || options.clip_norm || options.check_finite};
  if (scaler) {
    request.stale = !scaler->went_backward;
    request.rule = scaler->rule;
    scaler->tag_is_old = true;
  }
  kernels::step_decide({.request = request,
                        .scaler = scaler ? scaler->words.view() : kNoView,
                        .words = device_->words,
                        .outcome = outcome});
  return outcome;
}

void Optimizer::apply_on_device() {
  std::vector<std::pair<size_t, size_t>> moves;
  move_counters(moves);
  auto* counters = device_->counters.view().as<double>();
  const auto* rates = device_->rates.view().as<double>();
  std::vector<kernels::UpdateCounter> moved;
  for (const auto& [from, to] : moves) {
    moved.push_back({counters + from, counters + to});
  }
  std::vector<kernels::StretchSource> sources;
  std::vector<Range> ranges;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (Stretch stretch : stretches(groups_[i])) {
      for (size_t k = stretch.first; k < stretch.last; ++k) {
        groups_[i].items[k].parameter.value.bump_version();
        arena_->note_agreement(groups_[i].items[k].parameter);
      }
      if (!own_part(stretch)) {
        continue;
      }
      sources.push_back({.scale = stretch.scale,
                         .tag = stretch.tag.view().as<double>(),
                         .lr = rates + 2 * i,
                         .momentum = rates + 2 * i + 1,
                         .counter = counters + stretch.counter});
      ranges.push_back(range_of(i, stretch));
    }
  }
  constexpr int64_t kWords = kernels::kWordsOf<StretchWords>;
  const Tensor& words = device_->prepared;
  const Tensor prepared = make_view(words, {static_cast<int64_t>(ranges.size()) * kWords}, {1});
  kernels::step_prepare({.counters = moved,
                         .stretches = sources,
                         .beta2 = beta2(),
                         .words = device_->words,
                         .result = prepared});
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].words = flat_view(prepared, static_cast<int64_t>(i) * kWords, kWords);
    update(ranges[i]);
  }
}

// Which counters this step moves on, and to where: to itself where all of a counter's items have a
// gradient; else the items that have one get a counter of their own.
void Optimizer::move_counters(std::vector<std::pair<size_t, size_t>>& moves) {
  const auto count = static_cast<size_t>(device_->counters.numel());
  std::vector<size_t> users(count), taking(count), target(count);
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      ++users[item.counter];
      taking[item.counter] += leaf_with_gradient(item.parameter) != nullptr;
    }
  }
  size_t unused = 0;
  for (size_t from = 0; from < count; ++from) {
    if (taking[from] == 0) {
      continue;
    }
    target[from] = from;
    if (taking[from] < users[from]) {
      while (users[unused] != 0) {  // there are as many counters as items
        ++unused;
      }
      users[unused] = taking[from];
      target[from] = unused;
    }
    moves.emplace_back(from, target[from]);
  }
  for (Group& group : groups_) {
    for (Item& item : group.items) {
      if (leaf_with_gradient(item.parameter)) {
        item.counter = target[item.counter];
      }
    }
  }
}

std::vector<double> Optimizer::updates() const {
  std::vector<double> updates;
  const Tensor counters = device_ ? device_->counters.to(Device{}) : Tensor();
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      updates.push_back(device_ ? counters.data<double>()[item.counter]
                                : static_cast<double>(item.updates));
    }
  }
  return updates;
}

void Optimizer::restore_updates(const std::vector<double>& updates) {
  std::vector<double> counters;
  size_t i = 0;
  for (Group& group : groups_) {
    for (Item& item : group.items) {
      if (!device_) {
        item.updates = static_cast<int64_t>(updates[i++]);
        continue;
      }
      item.counter = 0;
      while (item.counter < counters.size() && counters[item.counter] != updates[i]) {
        ++item.counter;
      }
      if (item.counter == counters.size()) {
        counters.push_back(updates[i]);
      }
      ++i;
    }
  }
  if (device_) {
    counters.resize(updates.size());
    device_->counters = from_values(counters, device_->counters.sizes(), DType::f64, device());
  }
}

}  // namespace binade::optim
