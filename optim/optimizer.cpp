#include <binade/optim/device_words.h>
#include <binade/optim/gradients_internal.h>
#include <binade/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace binade::optim {
namespace {

bool is_rate(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

std::vector<ParamGroup> single_group(const ParameterList& parameters) { return {{parameters}}; }

Optimizer::Optimizer(std::vector<ParamGroup> groups, const Settings& settings,
                     std::vector<std::string> moment_names)
    : moment_names_(std::move(moment_names)),
      decay_norms_and_biases_(settings.decay_norms_and_biases),
      has_momentum_(settings.momentum.has_value()) {
  std::set<std::pair<int, int64_t>> seen;
  for (ParamGroup& given : groups) {
    Group group{std::move(given.parameters),
                given.lr.value_or(settings.lr),
                given.weight_decay.value_or(settings.weight_decay),
                given.momentum.value_or(settings.momentum.value_or(0)),
                {}};
    check(is_rate(group.lr), "optimizer: got lr = ", group.lr, ", expected a number >= 0");
    check(is_rate(group.weight_decay), "optimizer: got weight_decay = ", group.weight_decay,
          ", expected a number >= 0");
    check(!given.momentum || has_momentum_,
          "optimizer: got a group with a momentum, but the optimizer has none");
    check(is_rate(group.momentum), "optimizer: got momentum = ", group.momentum,
          ", expected a number >= 0");
    check(group.parameters.size() > 0, "optimizer: got a group without parameters");
    arena_ = arena_ ? arena_ : group.parameters.arena();
    check(arena_ == group.parameters.arena(),
          "optimizer: got parameters of several models or from before the model was moved; call "
          "parameters() on one model after to()");
    for (const Parameter& parameter : group.parameters) {
      check(parameter.numel() == 0 || seen.emplace(parameter.segment, parameter.offset).second,
            "optimizer: parameter ", parameter.name, " is in two groups");
      group.items.push_back({parameter});
    }
    std::stable_sort(group.items.begin(), group.items.end(), [](const Item& a, const Item& b) {
      return std::pair(a.parameter.segment, a.parameter.offset) <
             std::pair(b.parameter.segment, b.parameter.offset);
    });
    groups_.push_back(std::move(group));
  }
  check(arena_ != nullptr, "optimizer: got no parameters");
  for (size_t i = 0; i < moment_names_.size(); ++i) {
    moments_.push_back(arena_->make_state());
  }
  if (!device().is_cpu()) {
    create_device_state();
  }
  arena_->follow_values();
  ++arena_->optimizers;
}

Optimizer::~Optimizer() { --arena_->optimizers; }

const Optimizer::Group& Optimizer::at(size_t group) const {
  check(group < groups_.size(), "optimizer: got group ", group, " of ", groups_.size());
  return groups_[group];
}

std::vector<Optimizer::Extent> Optimizer::extents(size_t group) const {
  std::vector<Extent> all;
  for (const Item& item : at(group).items) {
    all.push_back({item.parameter.name, item.parameter.offset, item.parameter.numel()});
  }
  return all;
}

void Optimizer::fill_moment(size_t moment, double value) const {
  for (const Tensor& segment : moments_.at(moment)) {
    segment.fill_(value);
  }
}

void Optimizer::zero_grad() {
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      if (item.parameter.value.requires_grad()) {
        item.parameter.value.zero_grad();
      }
    }
  }
}

// Items that have a gradient, joined where they follow each other in memory and are updated alike.
std::vector<Optimizer::Stretch> Optimizer::stretches(const Group& group) const {
  std::vector<Stretch> all;
  for (size_t i = 0; i < group.items.size(); ++i) {
    const auto& [parameter, updates, counter] = group.items[i];
    Leaf* leaf = leaf_with_gradient(parameter);
    if (!leaf) {
      continue;
    }
    move_into_arena(*arena_, parameter, *leaf);
    const bool decays = decay_norms_and_biases_ || !parameter.norm_or_bias;
    const Stretch own{i,
                      i + 1,
                      parameter.segment,
                      parameter.offset,
                      parameter.numel(),
                      leaf->scale,
                      decays ? group.weight_decay : 0,
                      updates,
                      counter,
                      leaf->scale_word};
    Stretch* last = all.empty() ? nullptr : &all.back();
    if (last && last->last == i && last->continues_in(own, keeps_zeros())) {
      last->last = i + 1;
      last->numel = own.offset + own.numel - last->offset;
    } else {
      all.push_back(own);
    }
  }
  return all;
}

bool Optimizer::Stretch::continues_in(const Stretch& next, bool over_gaps) const {
  const int64_t end = offset + numel;
  const int64_t aligned = (end + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
  const bool scaled_alike = scale == next.scale && tag.handle().get() == next.tag.handle().get();
  if (segment != next.segment || !scaled_alike) {
    return false;
  }
  return next.offset == (over_gaps ? aligned : end) && weight_decay == next.weight_decay &&
         updates == next.updates && counter == next.counter;
}

std::vector<GradientRange> Optimizer::gradients() const {
  std::vector<const Parameter*> all;
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      all.push_back(&item.parameter);
    }
  }
  return gradient_ranges(*arena_, std::move(all));
}

// Of a sharded arena: the part of this rank.
bool Optimizer::own_part(Stretch& stretch) const {
  const Arena::Segment& segment = arena_->segments()[static_cast<size_t>(stretch.segment)];
  const int64_t begin = std::max(stretch.offset, segment.own_begin),
                end = std::min(stretch.offset + stretch.numel, segment.own_end);
  stretch.offset = begin;
  stretch.numel = end - begin;
  return stretch.numel > 0 || arena_->sharding() == Sharding::none;
}

GradientSummary Optimizer::gradient_summary() const {
  const Squares all = squares_of_ranks(*arena_, squares(gradients(), device()));
  GradientSummary summary{.norm = std::sqrt(all.sum), .non_finite = all.non_finite};
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      summary.parameters += leaf_with_gradient(item.parameter) != nullptr;
    }
  }
  return summary;
}

std::string Optimizer::first_non_finite() const {
  for (const Group& group : groups_) {
    for (const Parameter& parameter : group.parameters) {
      Squares own;
      for (const GradientRange& range : gradient_ranges(*arena_, {&parameter})) {
        own.non_finite += squares(range.grad).non_finite;
      }
      if (squares_of_ranks(*arena_, own).non_finite > 0) {
        return parameter.name;
      }
    }
  }
  return {};
}

StepResult Optimizer::step(const StepOptions& options) {
  if (device_) {
    return step_on_device(options, nullptr);
  }
  return step(options, nullptr);
}

int64_t Optimizer::step_count() const {
  return device_ ? static_cast<int64_t>(
                       read_words<kernels::OptimizerWords>(device_->words).applied_steps)
                 : step_count_;
}

double Optimizer::last_norm() const {
  return device_ ? read_words<kernels::OptimizerWords>(device_->words).norm : last_norm_;
}

void Optimizer::check_options(const StepOptions& options) const {
  check(std::isfinite(options.divisor) && options.divisor > 0,
        "step: got divisor = ", options.divisor, ", expected a positive number");
  check(!options.clip_norm || *options.clip_norm > 0,
        "step: got clip_norm = ", options.clip_norm.value_or(0), ", expected a positive number");
  if (options.accumulating || (options.divisor == 1 && !options.clip_norm)) {
    return;
  }
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      const Leaf* leaf = leaf_with_gradient(item.parameter);
      check(!leaf || options.divisor == 1 || !(leaf->clipped_norm || leaf->clipped_value),
            "step: got divisor = ", options.divisor, " for gradients that are clipped already (",
            item.parameter.name,
            "): the limit held for the sum of the window, not for its mean; leave the clipping to "
            "the step (clip_norm), or the division to the weights of the losses");
      check(!leaf || !options.clip_norm || !leaf->clipped_norm,
            "step: got clip_norm for gradients that clip_grad_norm has clipped already (",
            item.parameter.name, "); use one of them");
    }
  }
}

StepOutcome Optimizer::step(const StepOptions& options, const GradientSummary* known) {
  check_options(options);
  if (options.accumulating) {
    return StepOutcome::accumulating;
  }
  arena_->follow_values();
  const double factor = 1 / options.divisor;
  double clip = 1;
  last_norm_ = -1;
  if (known || options.clip_norm || options.check_finite) {
    const GradientSummary summary = known ? *known : gradient_summary();
    if (options.check_finite && summary.non_finite > 0) {
      zero_grad();
      return StepOutcome::overflow;
    }
    last_norm_ = summary.norm / options.divisor;
    if (options.clip_norm) {
      clip = kernels::clip_factor(*options.clip_norm, last_norm_, summary.non_finite == 0);
    }
  }
  bool any = false;
  for (size_t group = 0; group < groups_.size(); ++group) {
    any |= apply(group, factor, clip);
  }
  check(any, "step: no parameter has a gradient; call backward before step");
  arena_->gather_values();
  zero_grad();
  ++step_count_;
  return StepOutcome::applied;
}

// What update() takes; multiplier and update are the caller's to set.
Optimizer::Range Optimizer::range_of(size_t group, const Stretch& stretch) const {
  const auto index = static_cast<size_t>(stretch.segment);
  const Arena::Segment& segment = arena_->segments()[index];
  const auto flat = [&](const Tensor& t, int64_t begin) {
    return flat_view(t, stretch.offset - begin, stretch.numel);
  };
  Range range{.param = flat(segment.values, 0),
              .master = flat(segment.masters, segment.own_begin),
              .grad = flat(segment.gradients, segment.gradients_begin),
              .moments = {},
              .lr = groups_[group].lr,
              .weight_decay = stretch.weight_decay,
              .momentum = groups_[group].momentum,
              .grad_multiplier = 1,
              .update = 1,
              .group = group,
              .first = stretch.first,
              .last = stretch.last};
  for (const auto& moment : moments_) {
    range.moments.push_back(flat(moment[index], segment.own_begin));
  }
  return range;
}

bool Optimizer::apply(size_t index, double factor, double clip) {
  Group& group = groups_[index];
  const std::vector<Stretch> all = stretches(group);
  for (Stretch stretch : all) {
    if (own_part(stretch)) {
      Range range = range_of(index, stretch);
      range.grad_multiplier = kernels::gradient_multiplier(factor, clip, stretch.scale);
      range.update = stretch.updates + 1;
      update(range);
    }
    for (size_t i = stretch.first; i < stretch.last; ++i) {
      ++group.items[i].updates;
      group.items[i].parameter.value.bump_version();
      arena_->note_agreement(group.items[i].parameter);
    }
  }
  return !all.empty();
}

}  // namespace binade::optim
