// Arenas sharded over ranks.
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/parameter.h>
#include <binade/core/tensor/rank_group.h>

#include <algorithm>

namespace binade {
namespace {

int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// The length of the longest shard, which all shards but the last ones have.
int64_t shard_numel(int64_t numel, int64_t ranks) {
  return round_up((numel + ranks - 1) / ranks, Arena::kAlignment);
}

Tensor part(const Tensor& flat, int64_t begin, int64_t count) {
  return make_view(flat, {count}, {1}, begin);
}

int64_t memory_of(const Tensor& t) {
  return t.defined() ? t.numel() * static_cast<int64_t>(size_of(t.dtype())) : 0;
}

}  // namespace

const char* to_string(Sharding sharding) {
  constexpr const char* kName[] = {"none", "states", "gradients"};
  return kName[static_cast<int>(sharding)];
}

void Arena::shard(RankGroup& group, Sharding sharding) {
  check(sharding != Sharding::none, "shard: got Sharding::none, expected states or gradients");
  check(sharding_ == Sharding::none, "shard: the arena is sharded already");
  if (group.size() == 1) {
    return;
  }
  check(!has_optimizer(), "shard: an optimizer holds the parameters; shard before making it");
  const NoGradGuard guard;
  follow_values();
  clear_gradients();
  const auto ranks = static_cast<size_t>(group.size()), rank = static_cast<size_t>(group.rank());
  for (Segment& segment : segments_) {
    const int64_t length = shard_numel(segment.numel, group.size());
    for (size_t r = 0; r <= ranks; ++r) {
      segment.bounds.push_back(std::min(static_cast<int64_t>(r) * length, segment.numel));
    }
    segment.own_begin = segment.bounds[rank];
    segment.own_end = segment.bounds[rank + 1];
    if (segment.masters.defined()) {
      const Tensor own = empty({segment.own_numel()}, DType::f32, device());
      own.copy_(part(segment.masters, segment.own_begin, segment.own_numel()));
      segment.masters = own;
    }
    if (sharding == Sharding::gradients) {
      segment.gradients = empty({segment.own_numel()}, segment.dtype, device());
      segment.gradients.fill_(0);
      segment.gradients_begin = segment.own_begin;
    }
  }
  if (sharding == Sharding::gradients) {
    for (const Parameter& parameter : parameters_) {
      if (parameter.trainable) {
        parameter.leaf().buffer = {};
      }
    }
  }
  sharding_ = sharding;
  group_ = &group;
}

Tensor Arena::whole(const Tensor& state, int index) const {
  const Segment& segment = segments_[static_cast<size_t>(index)];
  if (sharding_ == Sharding::none) {
    return state;
  }
  const NoGradGuard guard;
  Tensor all = empty({segment.numel}, state.dtype(), state.device());
  part(all, segment.own_begin, segment.own_numel()).copy_(state);
  group_->gather_ranges(all, segment.bounds);
  return all;
}

void Arena::put(const Tensor& state, const Parameter& parameter, const Tensor& source) const {
  const Segment& segment = segments_[static_cast<size_t>(parameter.segment)];
  const NoGradGuard guard;
  const Dims &sizes = parameter.value.sizes(), &strides = parameter.value.strides();
  const int64_t begin = std::max(parameter.offset, segment.own_begin),
                end = std::min(parameter.offset + parameter.numel(), segment.own_end);
  if (begin >= end) {
    return;
  }
  if (end - begin == parameter.numel()) {
    make_view(state, sizes, strides, parameter.offset - segment.own_begin).copy_(source);
    return;
  }
  const Tensor ordered = empty_strided(sizes, strides, state.dtype(), state.device());
  ordered.copy_(source);
  part(state, begin - segment.own_begin, end - begin)
      .copy_(part(ordered, begin - parameter.offset, end - begin));
}

void Arena::gather_values() const {
  if (sharding_ == Sharding::none) {
    return;
  }
  for (const Segment& segment : segments_) {
    group_->gather_ranges(segment.values, segment.bounds);
  }
}

int64_t Arena::bytes() const {
  int64_t sum = 0;
  for (const Segment& segment : segments_) {
    sum += memory_of(segment.values) + memory_of(segment.gradients) + memory_of(segment.masters);
  }
  return sum;
}

ShardBytes predict_bytes(const Arena& arena, int64_t moments, Sharding sharding, int ranks) {
  ShardBytes bytes;
  for (const Arena::Segment& segment : arena.segments()) {
    const auto width = static_cast<int64_t>(size_of(segment.dtype)),
               state_width = static_cast<int64_t>(size_of(segment.state_dtype()));
    const int64_t own = sharding == Sharding::none
                            ? segment.numel
                            : std::min(shard_numel(segment.numel, ranks), segment.numel);
    bytes.values += segment.numel * width;
    bytes.gradients += (sharding == Sharding::gradients ? own : segment.numel) * width;
    bytes.masters += segment.masters.defined() ? own * 4 : 0;
    bytes.moments += moments * own * state_width;
  }
  return bytes;
}

}  // namespace binade
