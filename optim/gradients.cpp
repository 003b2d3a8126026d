#include <binade/core/tensor/create.h>
#include <binade/core/tensor/rank_group.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/optim/device_scalars_internal.h>
#include <binade/optim/gradients_internal.h>

#include <algorithm>
#include <utility>

namespace binade::optim {

void move_into_arena(const Arena& arena, const Parameter& parameter, Leaf& leaf) {
  const Arena::Segment& segment = arena.segments()[static_cast<size_t>(parameter.segment)];
  const View& value = parameter.value;
  if (arena.sharding() == Sharding::gradients) {
    check(
        !leaf.buffer.defined(), "step: the gradient of ", parameter.name,
        " was not reduced into the shards of the ranks; make a dist::DistributedDataParallel over "
        "the parameters, and let it reduce the last micro-batch of a window");
    return;
  }
  const View range = flat_view(segment.gradients, parameter.offset, value.numel);
  if (leaf.buffer.view().data == range.data) {
    return;
  }
  Tensor own = make_range(segment.gradients, value.sizes, value.strides, parameter.offset);
  kernels::copy({.x = leaf.buffer, .y = own});
  leaf.buffer = std::move(own);
}

std::vector<GradientRange> gradient_ranges(const Arena& arena,
                                           std::vector<const Parameter*> parameters) {
  std::sort(parameters.begin(), parameters.end(), [](const Parameter* a, const Parameter* b) {
    return std::pair(a->segment, a->offset) < std::pair(b->segment, b->offset);
  });
  std::vector<GradientRange> ranges;
  for (const Parameter* parameter : parameters) {
    Leaf* leaf = leaf_with_gradient(*parameter);
    if (!leaf) {
      continue;
    }
    move_into_arena(arena, *parameter, *leaf);
    const Arena::Segment& segment = arena.segments()[static_cast<size_t>(parameter->segment)];
    const bool sharded = arena.sharding() == Sharding::gradients;
    int64_t offset = sharded ? std::max(parameter->offset, segment.own_begin) : parameter->offset;
    const int64_t end = parameter->offset + parameter->numel(),
                  own_end = sharded ? std::min(end, segment.own_end) : end;
    if (sharded && offset >= own_end) {
      continue;
    }
    if (!ranges.empty()) {
      const GradientRange& last = ranges.back();
      constexpr int64_t kUnit = Arena::kAlignment;
      const int64_t next = (last.offset + last.grad.numel + kUnit - 1) / kUnit * kUnit;
      if (last.segment == parameter->segment && next == offset && last.scale == leaf->scale &&
          last.tag.handle().get() == leaf->device_scale.handle().get()) {
        offset = last.offset;
        ranges.pop_back();
      }
    }
    ranges.push_back(
        {.grad = flat_view(segment.gradients, offset - segment.gradients_begin, own_end - offset),
         .segment = parameter->segment,
         .offset = offset,
         .scale = leaf->scale,
         .tag = leaf->device_scale});
  }
  return ranges;
}

Squares squares(const View& flat) {
  const Tensor result = empty({2}, DType::f64, flat.device);
  kernels::gradient_stats({.grad = flat, .result = result});
  const Tensor host = result.to(Device{});
  return {host.at(0), static_cast<int64_t>(host.at(1))};
}

Squares squares(const std::vector<GradientRange>& ranges, Device device) {
  const Tensor step_scalars = make_device_scalars(kernels::OptimizerScalars(), device);
  for (const GradientRange& range : ranges) {
    kernels::step_stats({.grad = range.grad,
                         .scale = range.scale,
                         .tag = range.tag,
                         .position = 0,
                         .first = &range == ranges.data(),
                         .step_scalars = step_scalars});
  }
  const auto result = read_device_scalars<kernels::OptimizerScalars>(step_scalars);
  return {result.squares, static_cast<int64_t>(result.non_finite)};
}

Squares squares_of_ranks(const Arena& arena, const Squares& own) {
  if (arena.sharding() != Sharding::gradients) {
    return own;
  }
  const Tensor all = from_values({own.sum, static_cast<double>(own.non_finite)}, {2}, DType::f64);
  arena.group()->sum(all);
  return {all.at(0), static_cast<int64_t>(all.at(1))};
}

}  // namespace binade::optim
