// Parameters, and the arena that holds them.
//
// An Arena holds a model's parameters in flat segments, one per dtype: values and gradients (the
// same dtype), f32 masters of f16/bf16 values if the precision asks for them, and any state that an
// optimizer adds. All of these share offsets, so an optimizer step is one pass over ranges, and a
// DDP bucket or a ZeRO shard is a range. Ranges start at multiples of kAlignment elements (256
// bytes or more); the gaps hold zeros. Every range has its own version.
//
// An arena may be sharded over the ranks of a group (ZeRO: S. Rajbhandari et al., "ZeRO: memory
// optimizations toward training trillion parameter models", SC 2020). Each segment is split into
// one range per rank, of equal size and padded to kAlignment; the last ones may be shorter or
// empty.
#pragma once
#include <binade/core/autograd/autograd.h>

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace binade {

class Arena;
class RankGroup;

// The data that a rank keeps for its own range only. Every rank has all values.
enum class Sharding : uint8_t {
  none,
  states,     // ZeRO-1: masters and moments. The step updates the own range, then gathers values.
  gradients,  // ZeRO-2: gradients too. Backward reduces them to the rank that owns them.
};
const char* to_string(Sharding sharding);

// A parameter as a module registers it: the name, and the handles that hold it (several for tied
// weights).
struct ParameterSlot {
  std::string name;
  std::vector<Tensor*> handles;
  bool norm_or_bias = false;  // exempt from weight decay on request
  bool trainable = true;
  bool channels_last = false;  // memory order of a convolution weight [O, C, R, S]: OHWI
  DType dtype = DType::f32;    // requested; the arena converts
};

struct Parameter {
  std::string name;
  // The leaf, or for a frozen parameter of a module a handle that wants no gradient. Its data is
  // the arena range.
  Tensor value;
  int segment = 0;
  int64_t offset = 0;  // elements, in the segment
  bool norm_or_bias = false;
  bool trainable = true;
  size_t index = 0;  // in Arena::parameters()

  int64_t numel() const { return value.numel(); }
  Leaf& leaf() const;  // REQUIRES: trainable
};

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  static constexpr int64_t kAlignment = 128;

  struct Segment {
    DType dtype;
    int64_t numel;
    Tensor values;     // [numel]
    Tensor gradients;  // [numel], or only the own range, from gradients_begin on
    Tensor masters;    // f32, the own range; undefined if the values need no masters
    // The ranges of the ranks: [begin of the first, ..., numel]; empty if the arena is not sharded.
    std::vector<int64_t> bounds = {};
    int64_t own_begin = 0, own_end = -1;  // range of the states; everything if not sharded
    int64_t gradients_begin = 0;
    DType state_dtype() const { return compute_dtype(dtype); }
    int64_t own_numel() const { return own_end - own_begin; }
  };

  // Copies the slots' present values into new segments on their device and points every handle at
  // its range; the masters keep the values before rounding. Gradients move too, both present ones
  // and later ones from graphs that were recorded with the old handles.
  static std::shared_ptr<Arena> build(const std::vector<ParameterSlot>& slots, bool masters);

  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  Device device() const { return segments_.empty() ? Device{} : segments_[0].values.device(); }

  // A zeroed state tensor per segment for the own range, for example for moments.
  std::vector<Tensor> make_state() const;

  // Shards the arena over a group, which must outlive it. REQUIRES: every rank has the same arena.
  // Throws if an optimizer or a sharding exists. Gradients are dropped. With a single rank nothing
  // changes.
  void shard(RankGroup& group, Sharding sharding);
  Sharding sharding() const { return sharding_; }
  RankGroup* group() const { return group_; }  // null if not sharded
  // A whole state tensor: the tensor itself, or gathered from the ranks (collective).
  Tensor whole(const Tensor& state, int segment) const;
  // Sets this rank's part of a parameter in a state tensor from a tensor of the parameter's shape.
  void put(const Tensor& state, const Parameter& parameter, const Tensor& source) const;
  // Sets a parameter from a tensor of its shape; a master takes the values before rounding.
  void set_value(const Parameter& parameter, const Tensor& source) const;
  // A parameter's exact value, in its shape: a tensor that shares the master's memory, or else the
  // value itself. Throws if the master is sharded over ranks.
  Tensor exact_value(const Parameter& parameter) const;
  // Sets a master to its value if the value was changed in place since (by an init function,
  // copy_(), or a write with bump_version()). Where data<T>() gave out a pointer, only the elements
  // of the master change whose rounding differs from the value, so a pointer that only read changes
  // nothing. Optimizers call this before they read masters. An error while a graph is captured,
  // because every replay would do it.
  void follow_values() const;
  // Call it when a parameter's value and master were changed together.
  void note_agreement(const Parameter& parameter) const;
  // Call it after a step, in which each rank changed its range: every rank gets all values.
  // Collective if the arena is sharded.
  void gather_values() const;
  // Bytes in memory now: values, gradients and masters. Optimizer::state_bytes() has the moments.
  int64_t bytes() const;

  // Drops all gradients (writes nothing: the next backward overwrites them).
  void clear_gradients() const;

  // Converts the f16 and bf16 segments to f32, with the values of their masters if there are any.
  // All handles of the parameters follow; offsets and optimizer states stay valid. Gradients are
  // dropped. All or nothing.
  void widen();

  // Number of optimizers that hold the arena: with any, moving the model is an error.
  int optimizers = 0;
  bool has_optimizer() const { return optimizers > 0; }
  // The model has other tensors now: an optimizer would train tensors that no model uses.
  bool abandoned = false;

 private:
  const Tensor& masters_of(const Parameter& parameter) const;
  void follow_value(const Parameter& parameter) const;
  void follow_pointer(const Parameter& parameter) const;

  std::vector<Segment> segments_;
  std::vector<Parameter> parameters_;
  mutable std::vector<uint32_t>
      agreed_;  // per parameter: the value's version when its master was set
  Sharding sharding_ = Sharding::none;
  RankGroup* group_ = nullptr;
};

// While one exists, it notes the arenas whose follow_values() this thread calls. A capture calls it
// once, so the caller of each replay must call it again for these arenas.
class FollowedArenas {
 public:
  FollowedArenas();
  ~FollowedArenas();
  FollowedArenas(const FollowedArenas&) = delete;
  FollowedArenas& operator=(const FollowedArenas&) = delete;
  std::vector<std::weak_ptr<const Arena>> take() { return std::move(arenas_); }

 private:
  friend class Arena;
  std::vector<std::weak_ptr<const Arena>> arenas_;
  FollowedArenas* outer_;
};

// `to` takes the place of the leaf `from`: it gets its gradient, its hooks, and later gradients of
// graphs that were recorded with `from`. Does nothing if one of them has no leaf.
void hand_over_gradients(const Tensor& from, const Tensor& to);

// The parameters of a model or a subset of them, all in one arena.
class ParameterList {
 public:
  ParameterList() = default;
  // Variables that belong to no module, named "0", "1", ...: optim::Adam
  // adam(ParameterList::of(z)). They must be floating leaves on one device, and differ. They become
  // handles of a new arena with a gradient; handles that were copied from them before keep the old
  // tensor. A parameter of a module, or of another list that is in use, is an error.
  template <std::same_as<Tensor>... T>
  static ParameterList of(T&... variables) {
    return of_handles({&variables...});
  }
  static ParameterList of(std::span<Tensor> variables);
  ParameterList(std::shared_ptr<Arena> arena, std::vector<Parameter> parameters)
      : arena_(std::move(arena)), parameters_(std::move(parameters)) {}

  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  size_t size() const { return parameters_.size(); }
  const Parameter& operator[](size_t i) const { return parameters_[i]; }
  int64_t numel() const;
  const std::shared_ptr<Arena>& arena() const { return arena_; }
  // Shards the whole arena; call it before creating the optimizer. See Arena::shard().
  void shard(RankGroup& group, Sharding sharding) const { arena_->shard(group, sharding); }
  // The same parameters with the leaves of the arena, which one that is frozen now has again after
  // unfreeze(): for an owner that outlives the freezing, such as an optimizer.
  ParameterList with_leaves() const;
  // The parameters for which keep(parameter) is true.
  template <class F>
  ParameterList filter(F keep) const {
    std::vector<Parameter> kept;
    for (const Parameter& parameter : parameters_) {
      if (keep(parameter)) {
        kept.push_back(parameter);
      }
    }
    return {arena_, std::move(kept)};
  }

 private:
  static ParameterList of_handles(const std::vector<Tensor*>& handles);

  std::shared_ptr<Arena> arena_;
  std::vector<Parameter> parameters_;
};

// Bytes that the rank with most needs for the parameters of an arena, with `moments` state tensors
// per parameter (AdamW: 2).
struct ShardBytes {
  int64_t values = 0, gradients = 0, masters = 0, moments = 0;
  int64_t total() const { return values + gradients + masters + moments; }
};
ShardBytes predict_bytes(const Arena& arena, int64_t moments, Sharding sharding, int ranks);

}  // namespace binade
